/**
 * A challenge is a task that a buyer must solve to get a purchase token, such as a captcha or a proof of work. The shop
 * provides its own as a module, or uses the built-in one (proof-of-work.ts).
 */
import { StockadeError } from '../engine/errors.ts';
import { seldom } from '../lib/seldom.ts';
import { withTimeout } from '../lib/with-timeout.ts';

export interface ChallengeContext {
  readonly saleId: string;
  readonly buyerId: string;
  /** Aborts when no request waits for the call any more. */
  readonly signal: AbortSignal;
}

/** Both methods may run for many buyers at once. They may be slow, fail or hang: buyers are answered in time all the same. */
export interface Challenge {
  /** @returns what the client needs to solve the challenge, as a JSON value, or a promise of it */
  issue(context: ChallengeContext): unknown;
  /** @param answer the client's, any JSON value, not to be trusted @returns whether it is right, or a promise of that */
  verify(answer: unknown, context: ChallengeContext): unknown;
}

export type ChallengeReply =
  | { readonly kind: 'issued'; readonly challenge: unknown }
  | { readonly kind: 'passed' | 'failed' }
  /** Too many calls are under way. */
  | { readonly kind: 'busy' }
  /** The challenge has thrown, or has not answered in time. */
  | { readonly kind: 'broken' };

/** Calls under way in one worker. A call that times out is no longer counted, so a module that hangs can't block the rest. */
export const MAX_CHALLENGE_CALLS = 256;

/** With less time left than this, the challenge is not called. */
export const LEAST_CALL_MS = 50;

type Holder = Omit<ChallengeContext, 'signal'>;

/** Calls a challenge, with a deadline for each call and a limit on calls under way. */
export class ChallengeCaller {
  readonly #challenge: Challenge;
  readonly #fault: (error: unknown) => void;
  #underWay = 0;
  readonly #mayReport = seldom();

  /** @param fault called with what the challenge has thrown, and with timeouts */
  constructor(challenge: Challenge, fault: (error: unknown) => void) {
    this.#challenge = challenge;
    this.#fault = fault;
  }

  /** @param timeoutMs until the buyer must be answered */
  issue(holder: Holder, timeoutMs: number): Promise<ChallengeReply> {
    return this.#call(holder, timeoutMs, async (context) => {
      const challenge = asJson(await this.#challenge.issue(context));
      return { kind: 'issued', challenge };
    });
  }

  /** Only `true` counts as right. */
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
    // A call with too little time would time out at once: it would no longer be counted, and run on nevertheless.
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
    if (!this.#mayReport()) return;
    this.#fault(new StockadeError('challenge_broken', 'the challenge gave no answer', { cause }));
  }
}

/**
 * Copies a value through JSON. So a value that JSON can't hold is reported as the challenge's fault, not as one of the code
 * that writes the answer, and the challenge can't change the value later.
 */
function asJson(challenge: unknown): unknown {
  const text = JSON.stringify(challenge);
  if (text === undefined)
    throw new TypeError(`the challenge issued a value that JSON can't hold: ${typeof challenge}`);
  return JSON.parse(text);
}
