/**
 * Many buyers over HTTP: real keep-alive connections with one request under way on each. Every answer is kept with its buyer, so
 * that a test can compare it with Postgres.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, type Dispatcher } from 'undici';
import type { Promised } from '../shop/truth.ts';

const ANSWER_LIMIT_MS = 40_000;
/** Pause between two attempts of a buyer without an answer. It is short to keep tests fast. */
const RETRY_PAUSE_MS = 25;

export interface CrowdOptions {
  /** Public urls of one or more nodes, over which the clients are distributed. */
  readonly url: string | readonly string[];
  readonly saleId: string;
  /** Connections. */
  readonly clients: number;
  /** Each buyer buys once, through the next free client. A generator may yield buyers until the test has seen enough. */
  readonly buyers: Iterable<string>;
  readonly quantity?: number;
  /** Whether purchases have an `Idempotency-Key`, the same at each attempt of a buyer. */
  readonly keyed?: boolean;
  /** How long a buyer repeats a purchase that gets no answer, or one that settles nothing (503). */
  readonly retryUntilAnsweredMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface CrowdAnswer {
  readonly buyerId: string;
  readonly quantity: number;
  readonly key: string;
  /** 0: the connection broke before an answer came. */
  readonly status: number;
  /** `committed`, `accepted`, the problem's code, or `no_answer`. */
  readonly code: string;
  /** `''` if the answer names none. */
  readonly orderId: string;
  /** Seconds; `undefined` without such a header. */
  readonly retryAfter: number | undefined;
  readonly attempts: number;
  /** Milliseconds of the last attempt. */
  readonly ms: number;
}

export class CrowdResult {
  readonly answers: CrowdAnswer[] = [];

  with(code: string): CrowdAnswer[] {
    return this.answers.filter((answer) => answer.code === code);
  }

  /** How often each code was answered. */
  get codes(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { code } of this.answers) counts[code] = (counts[code] ?? 0) + 1;
    return counts;
  }

  /** The answers that promise an order: 201 and 202. */
  get promised(): Promised[] {
    return this.answers.filter(({ status }) => status === 201 || status === 202);
  }
}

/** Resolves when every buyer has its last answer. */
export async function crowd(options: CrowdOptions): Promise<CrowdResult> {
  const running = startCrowd(options);
  await running.ended;
  return running.result;
}

export interface RunningCrowd extends AsyncDisposable {
  /** Grows while the crowd runs. */
  readonly result: CrowdResult;
  readonly ended: Promise<void>;
  /** Starts no more buyers. Resolves when the last one has its answer. */
  stop(): Promise<CrowdResult>;
}

export function startCrowd(options: CrowdOptions): RunningCrowd {
  const result = new CrowdResult();
  const urls = [options.url].flat();
  const queue = options.buyers[Symbol.iterator]();
  let stopped = false;
  const line = async (index: number) => {
    const client = new Client(urls[index % urls.length]!, {
      headersTimeout: ANSWER_LIMIT_MS,
      bodyTimeout: ANSWER_LIMIT_MS,
    });
    try {
      for (let next = queue.next(); !next.done && !stopped; next = queue.next()) {
        result.answers.push(await askUntilAnswered(client, options, next.value));
      }
    } finally {
      await client.destroy();
    }
  };
  const ended = Promise.all(Array.from({ length: options.clients }, (_, i) => line(i))).then(() => {});
  const stop = async () => {
    stopped = true;
    await ended;
    return result;
  };
  return { result, ended, stop, [Symbol.asyncDispose]: async () => void (await stop()) };
}

/** Endless new names, for a crowd that runs until it is stopped. */
export function* everNewBuyers(name = 'buyer'): Generator<string> {
  for (let n = 0; ; n++) yield `${name}-${n}`;
}

async function askUntilAnswered(
  client: Client,
  options: CrowdOptions,
  buyerId: string,
): Promise<CrowdAnswer> {
  const { keyed = false, quantity = 1, retryUntilAnsweredMs = 0 } = options;
  const asked = { buyerId, quantity, key: keyed ? randomUUID() : '' };
  const deadline = performance.now() + retryUntilAnsweredMs;
  for (let attempts = 1; ; attempts++) {
    const answer = { ...asked, ...(await ask(client, options, asked)), attempts };
    const isAnswered = answer.status !== 0 && answer.status !== 503;
    if (isAnswered || performance.now() > deadline) return answer;
    await delay(RETRY_PAUSE_MS);
  }
}

type Asked = Pick<CrowdAnswer, 'buyerId' | 'quantity' | 'key'>;

async function ask(client: Client, { saleId, headers }: CrowdOptions, { buyerId, quantity, key }: Asked) {
  const began = performance.now();
  try {
    const { status, retryAfter, body } = await send(client, {
      method: 'POST',
      path: `/v1/sales/${saleId}/orders`,
      headers: {
        'x-buyer-id': buyerId,
        'content-type': 'application/json',
        ...(key === '' ? {} : { 'idempotency-key': key }),
        ...headers,
      },
      body: `{"quantity":${quantity}}`,
    });
    const { code, status: state, orderId = '' } = JSON.parse(body) as Record<string, string>;
    return { status, code: code ?? state ?? '', orderId, retryAfter, ms: performance.now() - began };
  } catch {
    const ms = performance.now() - began;
    return { status: 0, code: 'no_answer', orderId: '', retryAfter: undefined, ms };
  }
}

interface Raw {
  readonly status: number;
  readonly retryAfter: number | undefined;
  readonly body: string;
}

/** Uses `dispatch` and not `request`, which would make a stream of each of a hundred thousand bodies. */
function send(client: Client, request: Dispatcher.DispatchOptions): Promise<Raw> {
  return new Promise((resolve, reject) => {
    let status = 0;
    let retryAfter: number | undefined;
    let body = '';
    client.dispatch(request, {
      onRequestStart() {},
      onResponseStart(_, statusCode, headers) {
        status = statusCode;
        const seconds = headers['retry-after'];
        retryAfter = seconds === undefined ? undefined : Number(seconds);
      },
      onResponseData(_, chunk) {
        body += chunk;
      },
      onResponseEnd() {
        resolve({ status, retryAfter, body });
      },
      onResponseError(_, error) {
        reject(error);
      },
    });
  });
}
