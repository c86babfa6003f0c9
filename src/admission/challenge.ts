/**
 * A challenge: what somebody has to do before he is given a purchase token, such as a captcha or a piece of work for his
 * processor. The shop brings its own as a module, or takes the one that is built in (proof-of-work.ts).
 */
import { StockadeError } from '../engine/errors.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { withTimeout } from '../lib/with-timeout.ts';

export interface ChallengeContext {
  readonly saleId: string;
  readonly buyerId: string;
  /** Aborts when nobody waits for the call any more. */
  readonly signal: AbortSignal;
}

/** May be called for many buyers at once. Both may be slow, fail or hang: whoever asks is answered in time all the same. */
export interface Challenge {
  /** What the client is to be shown; anything that JSON can hold. */
  issue(context: ChallengeContext): unknown;
  /** @param answer the client's, as JSON; from a stranger @returns whether it is right, or a promise of that */
  verify(answer: unknown, context: ChallengeContext): unknown;
}

export type ChallengeReply =
  | { readonly kind: 'asked'; readonly challenge: unknown }
  | { readonly kind: 'passed' | 'failed' }
  /** Too many calls are under way. */
  | { readonly kind: 'busy' }
  /** It has thrown, or has not answered in time. */
  | { readonly kind: 'broken' };

/** Calls under way in one worker. One that is given up makes room, so that a module that hangs can't do so for ever. */
export const MAX_CHALLENGE_CALLS = 256;

/** With less time left nothing is asked of the challenge. */
export const LEAST_CALL_MS = 50;

/** What a challenge does wrong is reported once in this time, not for every buyer. */
const REPORT_EVERY_MS = 10_000;

type Holder = Omit<ChallengeContext, 'signal'>;

/** Calls a challenge with a deadline and a bound, whatever it does. */
export class ChallengeDesk {
  readonly #challenge: Challenge;
  readonly #fault: (error: unknown) => void;
  #underWay = 0;
  #reportedMs = Number.NEGATIVE_INFINITY;

  /** @param fault told what the challenge has thrown, and of calls that were given up */
  constructor(challenge: Challenge, fault: (error: unknown) => void) {
    this.#challenge = challenge;
    this.#fault = fault;
  }

  /** @param timeoutMs that who asks can still wait */
  issue(holder: Holder, timeoutMs: number): Promise<ChallengeReply> {
    return this.#call(holder, timeoutMs, async (context) => {
      const challenge = asJson(await this.#challenge.issue(context));
      return { kind: 'asked', challenge };
    });
  }

  /** Only `true` is right. */
  verify(answer: unknown, holder: Holder, timeoutMs: number): Promise<ChallengeReply> {
    return this.#call(holder, timeoutMs, async (context) => {
      const isRight = await this.#challenge.verify(answer, context);
      return { kind: isRight === true ? 'passed' : 'failed' };
    });
  }

  async #call(
    { saleId, buyerId }: Holder,
    timeoutMs: number,
    work: (context: ChallengeContext) => Promise<ChallengeReply>,
  ): Promise<ChallengeReply> {
    // A call that is given up in the next moment makes room for another, and goes on all the same.
    if (this.#underWay >= MAX_CHALLENGE_CALLS || timeoutMs < LEAST_CALL_MS) return { kind: 'busy' };
    const given = new AbortController();
    this.#underWay++;
    try {
      return await withTimeout(timeoutMs, work({ saleId, buyerId, signal: given.signal }));
    } catch (error) {
      this.#report(error);
      return { kind: 'broken' };
    } finally {
      this.#underWay--;
      given.abort();
    }
  }

  #report(cause: unknown): void {
    const now = monotonicMs();
    if (now < this.#reportedMs + REPORT_EVERY_MS) return;
    this.#reportedMs = now;
    this.#fault(new StockadeError('challenge_broken', 'the challenge gave no answer', { cause }));
  }
}

/**
 * What JSON makes of it: what it can't hold is a fault of the challenge, and not of who writes the answer, and the challenge
 * can't change it any more.
 */
function asJson(challenge: unknown): unknown {
  const text = JSON.stringify(challenge);
  if (text === undefined) throw new TypeError(`JSON can't hold what it has issued: ${typeof challenge}`);
  return JSON.parse(text);
}
