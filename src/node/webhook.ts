/** The shop's webhook: events by HTTP POST, signed. docs/events.md tells receivers what they get. */
import { createHmac } from 'node:crypto';
import { Agent, type Dispatcher } from 'undici';
import { StockadeError } from '../engine/errors.ts';
import type { OrderEvent, Receiver } from '../events/order-event.ts';

/** Answers have nothing to say beyond their status. */
const MAX_ANSWER_BYTES = 65_536;

export interface WebhookOptions {
  readonly url: string;
  readonly secret: string;
  /** For the whole of one request, milliseconds. */
  readonly timeoutMs: number;
}

/** It has not taken the events, or has not said so in time. */
export class NotDelivered extends StockadeError {
  constructor(why: string, cause?: unknown) {
    super('not_delivered', `the webhook ${why}`, { cause });
  }
}

export class Webhook implements Receiver {
  readonly #url: URL;
  readonly #secret: string;
  readonly #timeoutMs: number;
  readonly #agent: Agent;

  constructor({ url, secret, timeoutMs }: WebhookOptions) {
    this.#url = new URL(url);
    this.#secret = secret;
    this.#timeoutMs = timeoutMs;
    // One request at a time is under way, and none is sent before the last one is answered.
    this.#agent = new Agent({ connections: 1, pipelining: 1, connect: { timeout: timeoutMs } });
  }

  /** @throws NotDelivered, unless it answers 2xx in time. Redirects are not followed: nobody has said that events may go there. */
  async deliver(events: readonly OrderEvent[], signal: AbortSignal): Promise<void> {
    const within = new Deadline(this.#timeoutMs, signal);
    const status = await this.#post(JSON.stringify({ events }), within.signal)
      .catch((error: unknown) => {
        if (within.isOver) throw new NotDelivered(`did not answer within ${this.#timeoutMs} ms`, error);
        throw new NotDelivered(`can't be reached: ${reasonOf(error)}`, error);
      })
      .finally(() => within.letGo());
    if (status < 200 || status > 299) throw new NotDelivered(`answered ${status}`);
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  async #post(body: string, signal: AbortSignal): Promise<number> {
    const timestamp = String(Math.floor(Date.now() / 1_000));
    const options: Dispatcher.RequestOptions = {
      method: 'POST',
      origin: this.#url.origin,
      path: `${this.#url.pathname}${this.#url.search}`,
      headers: {
        'content-type': 'application/json',
        'stockade-timestamp': timestamp,
        'stockade-signature': `v1=${signatureOf(this.#secret, timestamp, body)}`,
      },
      body,
      signal,
    };
    const answer = await this.#agent.request(options);
    // The status counts, whatever becomes of the rest.
    await answer.body.dump({ limit: MAX_ANSWER_BYTES, signal }).catch(() => {});
    return answer.statusCode;
  }
}

/**
 * Aborts what it is given to when the time is over or `outer` aborts, whichever is first. Not `AbortSignal.any`: with it,
 * Node keeps something of every request at `outer`, which lives as long as the node does.
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

  /** To be called at the end, whatever it was. */
  letGo(): void {
    clearTimeout(this.#timer);
    this.#outer.removeEventListener('abort', this.#abort);
  }

  readonly #abort = (): void => this.#controller.abort(this.#outer.reason);
}

/** HMAC-SHA256 of `<timestamp>.<body>`, in hexadecimal. */
function signatureOf(secret: string, timestamp: string, body: string): string {
  return createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
}

function reasonOf(error: unknown): string {
  const { message, code } = error as { message?: string; code?: string };
  return message || code || String(error);
}
