import { createHash } from 'node:crypto';
import { describe, expect, test, vi } from 'vitest';
import {
  type Challenge,
  ChallengeCaller,
  LEAST_CALL_MS,
  MAX_CHALLENGE_CALLS,
} from '../../../src/admission/challenge.ts';
import { ProofOfWork } from '../../../src/admission/proof-of-work.ts';
import { PurchaseTokens } from '../../../src/admission/purchase-token.ts';

const KEY = new Uint8Array(32).fill(1);
const NEXT_KEY = new Uint8Array(32).fill(2);
const ANN = { saleId: 'tickets', buyerId: 'ann' };
const NOW = Date.UTC(2026, 10, 27, 20);
const TTL_S = 300;

let nowMs = NOW;
const clock = () => nowMs;
const tokensOf = (...keys: Uint8Array[]) => new PurchaseTokens({ keys, ttlSeconds: TTL_S }, clock);
const at = <T>(ms: number, work: () => T): T => {
  nowMs = NOW + ms;
  try {
    return work();
  } finally {
    nowMs = NOW;
  }
};

describe('a purchase token', () => {
  const tokens = tokensOf(KEY);
  const { token, expiresAtMs } = tokens.issue(ANN, 3);

  test('is valid for its buyer, its sale and its generation', () => {
    expect(tokens.check(token, ANN, 3)).toBe('genuine');
    expect(expiresAtMs).toBe(NOW + TTL_S * 1_000);
    expect(tokens.check(token, { ...ANN, buyerId: 'bob' }, 3)).toBe('alien');
    expect(tokens.check(token, { ...ANN, saleId: 'other' }, 3)).toBe('alien');
    expect(tokens.check(token, ANN, 4)).toBe('generation');
  });

  test('of a generation that this node does not know yet is valid', () => {
    expect(tokens.check(token, ANN, 2)).toBe('genuine');
  });

  test('ends at its expiry time', () => {
    expect(at(TTL_S * 1_000 - 1, () => tokens.check(token, ANN, 3))).toBe('genuine');
    expect(at(TTL_S * 1_000, () => tokens.check(token, ANN, 3))).toBe('expired');
  });

  test('can’t be prolonged or forged', () => {
    const [version, generation, expiry, mac] = token.split('.');
    const forged = [
      `${version}.${generation}.${Number(expiry) + 1}.${mac}`,
      `${version}.${Number(generation) + 1}.${expiry}.${mac}`,
      `${version}.0${generation}.${expiry}.${mac}x`,
      `2.${generation}.${expiry}.${mac}`,
      `${version}.${generation}.${expiry}.${'A'.repeat(43)}`,
      `${version}.${generation}.${expiry}.${mac!.slice(0, -1)}`,
      `${token} `,
      '',
      '....',
      'x'.repeat(8_000),
    ];
    for (const text of forged) expect(tokens.check(text, ANN, 3), text).toBe('alien');
  });

  test('is accepted by nodes that have its key as their second one', () => {
    const before = tokensOf(KEY);
    const told = tokensOf(KEY, NEXT_KEY);
    const turned = tokensOf(NEXT_KEY, KEY);
    const after = tokensOf(NEXT_KEY);
    const old = before.issue(ANN, 1).token;
    const young = turned.issue(ANN, 1).token;
    expect([told, turned].map((node) => node.check(old, ANN, 1))).toEqual(['genuine', 'genuine']);
    expect([told, turned, after].map((node) => node.check(young, ANN, 1))).toEqual(
      Array.from({ length: 3 }, () => 'genuine'),
    );
    expect(after.check(old, ANN, 1)).toBe('alien');
    expect(before.check(young, ANN, 1)).toBe('alien');
  });

  test('of a key that is being replaced is still accepted, and no new one uses that key', () => {
    const outgoing = { key: KEY, untilMs: NOW + 60_000 };
    const moved = new PurchaseTokens({ keys: [NEXT_KEY], outgoing, ttlSeconds: TTL_S }, clock);
    expect(moved.check(token, ANN, 3)).toBe('genuine');
    expect(moved.check(token, { ...ANN, buyerId: 'bob' }, 3)).toBe('alien');
    expect(at(59_999, () => moved.check(token, ANN, 3))).toBe('genuine');
    expect(at(60_000, () => moved.check(token, ANN, 3))).toBe('alien');
    const young = moved.issue(ANN, 3).token;
    expect(moved.check(young, ANN, 3)).toBe('genuine');
    expect(tokens.check(young, ANN, 3)).toBe('alien');
  });
});

function solve(seed: string, bits: number): string {
  for (let solution = 0; ; solution++) {
    const hash = createHash('sha256').update(`${seed}.${solution}`).digest();
    if (hash.readUInt32BE(0) >>> (32 - bits) === 0) return String(solution);
  }
}

describe('proof of work', () => {
  const BITS = 8;
  const work = new ProofOfWork([KEY], BITS, clock);
  const { seed, expiresAt } = work.issue(ANN);
  const solution = solve(seed, BITS);

  test('is valid for the same buyer and sale, until it expires', () => {
    const answer = { seed, solution };
    expect(work.verify(answer, ANN)).toBe(true);
    expect(work.verify(answer, { ...ANN, buyerId: 'bob' })).toBe(false);
    expect(work.verify(answer, { ...ANN, saleId: 'other' })).toBe(false);
    expect(at(Date.parse(expiresAt) - NOW - 1, () => work.verify(answer, ANN))).toBe(true);
    expect(at(Date.parse(expiresAt) - NOW, () => work.verify(answer, ANN))).toBe(false);
  });

  test('must be solved for a seed that this shop has issued', () => {
    const wrong = Array.from({ length: 1_000 }, (_, i) => String(i)).find(
      (text) => createHash('sha256').update(`${seed}.${text}`).digest()[0] !== 0,
    );
    expect(work.verify({ seed, solution: wrong }, ANN)).toBe(false);
    const others = new ProofOfWork([NEXT_KEY], BITS, clock).issue(ANN).seed;
    expect(work.verify({ seed: others, solution: solve(others, BITS) }, ANN)).toBe(false);
    const easier = new ProofOfWork([KEY], 1, clock).issue(ANN).seed;
    expect(work.verify({ seed: easier, solution: solve(easier, BITS) }, ANN)).toBe(false);
  });

  test('is accepted by a node that signs with another key and knows the issuer’s key', () => {
    const answer = { seed, solution };
    expect(new ProofOfWork([NEXT_KEY, KEY], BITS, clock).verify(answer, ANN)).toBe(true);
    expect(new ProofOfWork([NEXT_KEY], BITS, clock).verify(answer, ANN)).toBe(false);
  });

  test.each([
    null,
    7,
    'text',
    [],
    {},
    { seed },
    { solution },
    { seed, solution: 7 },
    { seed: [seed], solution },
  ])('is not %j', (answer) => {
    expect(work.verify(answer, ANN)).toBe(false);
  });
});

describe('a challenge', () => {
  const WAIT_MS = 10_000;
  const deskOf = (challenge: Partial<Challenge>) => {
    const faults: unknown[] = [];
    const never = () => new Promise(() => {});
    const desk = new ChallengeCaller({ issue: never, verify: never, ...challenge }, (error) =>
      faults.push(error),
    );
    return { desk, faults };
  };

  test('is called for the answer, and only `true` accepts it', async () => {
    const { desk, faults } = deskOf({ issue: () => ({ siteKey: 'k' }), verify: (answer) => answer });
    expect(await desk.issue(ANN, WAIT_MS)).toEqual({ kind: 'issued', challenge: { siteKey: 'k' } });
    expect(await desk.verify(true, ANN, WAIT_MS)).toEqual({ kind: 'passed' });
    expect(await desk.verify('true', ANN, WAIT_MS)).toEqual({ kind: 'failed' });
    expect(await desk.verify(Promise.resolve(true), ANN, WAIT_MS)).toEqual({ kind: 'passed' });
    expect(faults).toEqual([]);
  });

  test('that throws or rejects is reported as broken, once for many buyers', async () => {
    const { desk, faults } = deskOf({
      issue: () => {
        throw new Error('no captcha');
      },
      verify: () => Promise.reject(new Error('no captcha')),
    });
    expect(await desk.issue(ANN, WAIT_MS)).toEqual({ kind: 'broken' });
    expect(await desk.verify(1, ANN, WAIT_MS)).toEqual({ kind: 'broken' });
    expect(faults).toMatchObject([{ code: 'challenge_broken', cause: { message: 'no captcha' } }]);
  });

  test('that JSON can’t hold is broken', async () => {
    const { desk, faults } = deskOf({ issue: () => ({ amount: 1n }) });
    expect(await desk.issue(ANN, WAIT_MS)).toEqual({ kind: 'broken' });
    expect(faults).toHaveLength(1);
  });

  test('that hangs is given up and reported', async () => {
    let signal: AbortSignal | undefined;
    const verify: Challenge['verify'] = (_, context) => {
      signal = context.signal;
      return new Promise(() => {});
    };
    const { desk } = deskOf({ verify });
    expect(await desk.verify(1, ANN, LEAST_CALL_MS)).toEqual({ kind: 'broken' });
    expect(signal?.aborted).toBe(true);
  });

  test('is not called when there is no time left for an answer', async () => {
    const verify = vi.fn(() => true);
    expect(await deskOf({ verify }).desk.verify(1, ANN, LEAST_CALL_MS - 1)).toEqual({ kind: 'busy' });
    expect(verify).not.toHaveBeenCalled();
  });

  test('is called for a bounded number of requests at a time', async () => {
    const waiting: ((value: boolean) => void)[] = [];
    const { desk } = deskOf({ verify: () => new Promise((resolve) => waiting.push(resolve)) });
    const calls = Array.from({ length: MAX_CHALLENGE_CALLS }, () => desk.verify(1, ANN, WAIT_MS));
    expect(await desk.verify(1, ANN, WAIT_MS)).toEqual({ kind: 'busy' });
    expect(await desk.issue(ANN, WAIT_MS)).toEqual({ kind: 'busy' });
    waiting.pop()!(true);
    expect(await Promise.race(calls)).toEqual({ kind: 'passed' });
    const next = desk.verify(1, ANN, WAIT_MS);
    for (const settle of waiting) settle(false);
    expect(await next).toEqual({ kind: 'failed' });
    await Promise.all(calls);
  });
});
