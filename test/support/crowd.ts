/**
 * A crowd: many clients on keep-alive connections, one request in flight each, over real sockets. Every answer is kept
 * by buyer, so that a test can compare what was said with what is in Postgres.
 */
import { Client } from 'undici';

export interface CrowdOptions {
  readonly url: string;
  readonly saleId: string;
  readonly clients: number;
  /** The buyers, in the order in which they ask; the clients share them out as they become free. */
  readonly buyers: Iterable<string>;
  readonly quantity?: number;
  readonly prefer?: string;
  /** A buyer without a final answer (503, or a broken connection) asks again for so long. 0: never. */
  readonly retryForMs?: number;
}

export interface Placed {
  readonly buyerId: string;
  readonly orderId: string;
  readonly quantity: number;
  readonly status: 'committed' | 'accepted';
}

export interface CrowdAnswers {
  readonly requests: number;
  readonly placed: readonly Placed[];
  /** Final answers by code, the placed ones among them. */
  readonly codes: Readonly<Record<string, number>>;
}

interface Answer {
  readonly status: number;
  readonly code: string;
  readonly orderId?: string;
  readonly quantity?: number;
}

export async function crowd(options: CrowdOptions): Promise<CrowdAnswers> {
  const placed: Placed[] = [];
  const codes: Record<string, number> = {};
  let requests = 0;
  const queue = options.buyers[Symbol.iterator]();

  async function client(): Promise<void> {
    const connection = new Client(options.url);
    for (let next = queue.next(); !next.done; next = queue.next()) {
      const buyerId = next.value;
      const deadline = Date.now() + (options.retryForMs ?? 0);
      let answer = await buy(connection, buyerId, options);
      requests++;
      while (answer.status >= 500 && Date.now() < deadline) {
        answer = await buy(connection, buyerId, options);
        requests++;
      }
      codes[answer.code] = (codes[answer.code] ?? 0) + 1;
      if (answer.code === 'committed' || answer.code === 'accepted') {
        placed.push({ buyerId, orderId: answer.orderId!, quantity: answer.quantity!, status: answer.code });
      }
    }
    await connection.close();
  }

  await Promise.all(Array.from({ length: options.clients }, client));
  return { requests, placed, codes };
}

/** Each buyer repeats with the same key until there is an answer that stands. */
async function buy(connection: Client, buyerId: string, options: CrowdOptions): Promise<Answer> {
  try {
    const response = await connection.request({
      method: 'POST',
      path: `/v1/sales/${options.saleId}/orders`,
      headers: {
        'x-buyer-id': buyerId,
        'content-type': 'application/json',
        ...(options.retryForMs && { 'idempotency-key': `key-${buyerId}` }),
        ...(options.prefer && { prefer: options.prefer }),
      },
      body: JSON.stringify({ quantity: options.quantity ?? 1 }),
    });
    const body = (await response.body.json()) as Record<string, unknown>;
    return { ...body, status: response.statusCode, code: String(body.code ?? body.status) } as Answer;
  } catch (error) {
    return { status: 599, code: error instanceof Error ? error.name : 'error' };
  }
}
