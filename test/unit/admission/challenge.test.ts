/** Calls of a challenge: each ends in time, and a challenge that fails or hangs holds up nobody else. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type Challenge,
  ChallengeCaller,
  type ChallengeContext,
  LEAST_CALL_MS,
  MAX_CHALLENGE_CALLS,
} from '../../../src/admission/challenge.ts';
import { freezeTime } from '../../support/engine/frozen-time.ts';

const HOLDER = { saleId: 'sale', buyerId: 'anna' };
const TIMEOUT_MS = 1_000;

let faults: unknown[];
let asked: { readonly answer: unknown; readonly context: ChallengeContext }[];

beforeEach(() => {
  freezeTime();
  faults = [];
  asked = [];
});

afterEach(() => vi.useRealTimers());

/** @param behave what the challenge returns or throws */
function calling(behave: () => unknown): ChallengeCaller {
  const call = (answer: unknown, context: ChallengeContext) => {
    asked.push({ answer, context });
    return behave();
  };
  const challenge: Challenge = {
    issue: (context) => call(undefined, context),
    verify: call,
  };
  return new ChallengeCaller(challenge, (error) => faults.push(error));
}

const fails = () => {
  throw new Error('no captcha today');
};

describe('a challenge', () => {
  it('is issued as a copy that the challenge can’t change later', async () => {
    const task = { bits: 3, none: undefined };
    const reply = await calling(async () => task).issue(HOLDER, TIMEOUT_MS);
    task.bits = 4;
    expect(reply).toEqual({ kind: 'issued', challenge: { bits: 3 } });
    expect(asked[0]!.context).toMatchObject(HOLDER);
  });

  it('gets the answer; only true is right', async () => {
    const verified = async (verdict: unknown) =>
      (await calling(() => verdict).verify('42', HOLDER, TIMEOUT_MS)).kind;
    expect(await verified(true)).toBe('passed');
    expect(await verified(Promise.resolve(true))).toBe('passed');
    for (const other of [false, 1, 'true', {}, undefined]) expect(await verified(other)).toBe('failed');
    expect(asked[0]).toMatchObject({ answer: '42', context: HOLDER });
  });

  it('may not end while its signal says that somebody waits; after the call nobody does', async () => {
    let wasAborted: boolean | undefined;
    const caller = calling(() => {
      wasAborted = asked[0]!.context.signal.aborted;
      return true;
    });
    await caller.verify('42', HOLDER, TIMEOUT_MS);
    expect([wasAborted, asked[0]!.context.signal.aborted]).toEqual([false, true]);
  });

  it.each<[string, () => unknown, new () => Error]>([
    ['throws', fails, Error],
    ['rejects', async () => fails(), Error],
    ['returns what JSON can’t hold', () => () => {}, TypeError],
    ['returns nothing', () => undefined, TypeError],
  ])('is broken if it %s', async (_, behave, Cause) => {
    expect(await calling(behave).issue(HOLDER, TIMEOUT_MS)).toEqual({ kind: 'broken' });
    expect(faults).toEqual([expect.objectContaining({ code: 'challenge_broken', cause: expect.any(Cause) })]);
  });

  it('is broken if it does not answer in time', async () => {
    const reply = calling(() => new Promise(() => {})).verify('42', HOLDER, TIMEOUT_MS);
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS - 1);
    expect([faults.length, asked[0]!.context.signal.aborted]).toEqual([0, false]);
    await vi.advanceTimersByTimeAsync(1);
    expect(await reply).toEqual({ kind: 'broken' });
    expect([faults.length, asked[0]!.context.signal.aborted]).toEqual([1, true]);
  });

  it('is not called with too little time, or while as many calls are under way as may be', async () => {
    const caller = calling(() => new Promise(() => {}));
    expect(await caller.issue(HOLDER, LEAST_CALL_MS - 1)).toEqual({ kind: 'busy' });
    expect(asked).toEqual([]);
    const replies = Array.from({ length: MAX_CHALLENGE_CALLS }, () => caller.issue(HOLDER, LEAST_CALL_MS));
    expect(await caller.issue(HOLDER, TIMEOUT_MS)).toEqual({ kind: 'busy' });
    expect(asked).toHaveLength(MAX_CHALLENGE_CALLS);
    await vi.advanceTimersByTimeAsync(LEAST_CALL_MS);
    expect(new Set((await Promise.all(replies)).map(({ kind }) => kind))).toEqual(new Set(['broken']));
    // Calls that have timed out do not count any more.
    void caller.issue(HOLDER, TIMEOUT_MS);
    expect(asked).toHaveLength(MAX_CHALLENGE_CALLS + 1);
  });

  it('that breaks for every buyer is reported once in ten seconds', async () => {
    const caller = calling(fails);
    const breaks = async () => {
      await caller.issue(HOLDER, TIMEOUT_MS);
      return faults.length;
    };
    expect([await breaks(), await breaks()]).toEqual([1, 1]);
    vi.advanceTimersByTime(9_999);
    expect(await breaks()).toBe(1);
    vi.advanceTimersByTime(1);
    expect([await breaks(), await breaks()]).toEqual([2, 2]);
  });
});
