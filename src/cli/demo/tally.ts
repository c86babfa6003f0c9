import { createHistogram } from 'node:perf_hooks';

/** The answers that the crowd got. Nothing in it comes from the server's own counters. */
export interface CrowdResult {
  readonly requests: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Answers by code; a request whose connection broke counts as `no_answer`. */
  readonly answers: Readonly<Record<string, number>>;
  /** Different buyers who asked. */
  readonly buyersAsked: number;
  /** Different order ids in the answers. */
  readonly orders: number;
  /** Different buyers who were given an order. */
  readonly buyersServed: number;
}

/** How far the crowd is. */
export interface CrowdProgress {
  /** Requests that have ended. */
  readonly requests: number;
  /** Different orders in the answers. */
  readonly orders: number;
  /** Answers with a status of 400 to 499. */
  readonly refusals: number;
}

export const NO_ANSWER = 'no_answer';

export class Tally {
  readonly #latencyUs = createHistogram({ lowest: 1, highest: 3_600_000_000, figures: 3 });
  readonly #answers = new Map<string, number>();
  readonly #asked = new Set<number>();
  readonly #served = new Set<number>();
  readonly #orders = new Set<string>();
  #requests = 0;
  #refusals = 0;

  get progress(): CrowdProgress {
    return { requests: this.#requests, orders: this.#orders.size, refusals: this.#refusals };
  }

  /** Counts one request that has ended. @param status 0 if there was no answer */
  add(buyer: number, status: number, body: string, milliseconds: number): void {
    this.#requests++;
    this.#latencyUs.record(Math.max(1, Math.round(milliseconds * 1_000)));
    this.#asked.add(buyer);
    const { code, orderId } = readAnswer(status, body);
    this.#answers.set(code, (this.#answers.get(code) ?? 0) + 1);
    if (status >= 400 && status < 500) this.#refusals++;
    if (orderId === undefined) return;
    this.#orders.add(orderId);
    this.#served.add(buyer);
  }

  result(seconds: number): CrowdResult {
    return {
      requests: this.#requests,
      seconds,
      p50Ms: this.#latencyUs.percentile(50) / 1_000,
      p99Ms: this.#latencyUs.percentile(99) / 1_000,
      answers: Object.fromEntries(this.#answers),
      buyersAsked: this.#asked.size,
      orders: this.#orders.size,
      buyersServed: this.#served.size,
    };
  }
}

interface Answer {
  readonly code: string;
  /** Only if the answer sold an order: a refusal may name orders too. */
  readonly orderId?: string;
}

function readAnswer(status: number, body: string): Answer {
  if (status === 0) return { code: NO_ANSWER };
  try {
    const parsed = JSON.parse(body) as { code?: unknown; status?: unknown; orderId?: unknown };
    if ((status === 201 || status === 202) && typeof parsed.orderId === 'string') {
      return { code: String(parsed.status), orderId: parsed.orderId };
    }
    if (status >= 400 && typeof parsed.code === 'string') return { code: parsed.code };
  } catch {
    // Falls through: an answer that is not JSON is counted by its status.
  }
  return { code: `http_${status}` };
}
