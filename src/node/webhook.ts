/**
 * Sends events to the shop's webhook by HTTP POST requests, signed as Standard Webhooks specifies. docs/events.md describes them for
 * receivers.
 */
import { createHash, createHmac } from 'node:crypto';
import { Agent, type Dispatcher } from 'undici';
import { webhookKey } from '../config/values/webhook-secret.ts';
import { StockadeError } from '../engine/errors.ts';
import type { OrderEvent, Receiver } from '../events/order-event.ts';

/** Only the status of an answer is used. Its body is read up to this size, so that the connection can be reused. */
const MAX_ANSWER_BYTES = 65_536;

export interface WebhookOptions {
  readonly url: string;
  readonly secret: string;
  /** Limit for a whole request, milliseconds. */
  readonly timeoutMs: number;
}

/** The webhook did not accept the events, or its answer did not come in time. */
export class NotDelivered extends StockadeError {
  constructor(why: string, cause?: unknown) {
    super('not_delivered', `the webhook ${why}`, { cause });
  }
}

export class Webhook implements Receiver {
  readonly #url: URL;
  readonly #key: Buffer;
  readonly #timeoutMs: number;
  readonly #agent: Agent;

  constructor({ url, secret, timeoutMs }: WebhookOptions) {
    this.#url = new URL(url);
    this.#key = webhookKey(secret);
    this.#timeoutMs = timeoutMs;
    // One connection and no pipelining: a request is sent only when the one before it is answered.
    this.#agent = new Agent({ connections: 1, pipelining: 1, connect: { timeout: timeoutMs } });
  }

  /**
   * Redirects are not followed, because no setting allows events to go to their target.
   * @throws NotDelivered unless the webhook answers 2xx in time
   */
  async deliver(events: readonly OrderEvent[], signal: AbortSignal): Promise<void> {
    const deadline = new Deadline(this.#timeoutMs, signal);
    const status = await this.#post(idOf(events), JSON.stringify({ events }), deadline.signal)
      .catch((error: unknown) => {
        if (deadline.isOver) throw new NotDelivered(`did not answer within ${this.#timeoutMs} ms`, error);
        throw new NotDelivered(`can't be reached: ${reasonOf(error)}`, error);
      })
      .finally(() => deadline.release());
    if (status < 200 || status > 299) throw new NotDelivered(`answered ${status}`);
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  async #post(id: string, body: string, signal: AbortSignal): Promise<number> {
    const timestamp = String(Math.floor(Date.now() / 1_000));
    const options: Dispatcher.RequestOptions = {
      method: 'POST',
      origin: this.#url.origin,
      path: `${this.#url.pathname}${this.#url.search}`,
      headers: {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        'webhook-signature': signatureOf(this.#key, `${id}.${timestamp}.${body}`),
      },
      body,
      signal,
    };
    const answer = await this.#agent.request(options);
    // The status is the result, even if the rest of the answer fails.
    await answer.body.dump({ limit: MAX_ANSWER_BYTES, signal }).catch(() => {});
    return answer.statusCode;
  }
}

/**
 * Its signal aborts when the time is over or when `outer` aborts. `AbortSignal.any` would do the same, but Node would keep
 * some memory of every request at `outer`, which lives as long as the process.
 */
class Deadline {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  isOver = false;

  constructor(ms: number, outer: AbortSignal) {
    this.#outer = outer;
    this.#timer = setTimeout(() => {
      this.isOver = true;
      this.#controller.abort();
    }, ms);
    outer.addEventListener('abort', this.#abort, { once: true });
    if (outer.aborted) this.#abort();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Must be called when the request has ended, however it did. */
  release(): void {
    clearTimeout(this.#timer);
    this.#outer.removeEventListener('abort', this.#abort);
  }

  readonly #abort = (): void => this.#controller.abort(this.#outer.reason);
}

/** As Standard Webhooks has it: HMAC-SHA256 in base64, with the version of the scheme. */
function signatureOf(key: Buffer, content: string): string {
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
}

/**
 * Names the events of a request. A receiver may drop a request whose id it knows, so requests with different events must
 * have different ids: a failed request is followed by smaller ones.
 */
function idOf(events: readonly OrderEvent[]): string {
  const hash = createHash('sha256').update(events.map(({ id }) => id).join(' '));
  return `msg_${hash.digest('hex').slice(0, 32)}`;
}

function reasonOf(error: unknown): string {
  const { message, code } = error as { message?: string; code?: string };
  return message || code || String(error);
}
