/** A proof of work is right for the buyer, sale and difficulty that it was issued for, until it expires. */
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { ProofOfWork } from '../../../src/admission/proof-of-work.ts';

const BITS = 6;
const NOW = Date.UTC(2026, 10, 27, 12, 0, 0, 500);
const EXPIRES = Date.UTC(2026, 10, 27, 12, 5);
const HOLDER = { saleId: 'sale', buyerId: 'anna' };
const key = (fill: number) => new Uint8Array(32).fill(fill);

let now = NOW;
const work = (keys: readonly Uint8Array[] = [key(1)], bits = BITS) => new ProofOfWork(keys, bits, () => now);

/** The first number whose hash begins with so many zero bits, and not with one more. */
function solutionOf(seed: string, bits = BITS): string {
  for (let i = 0; ; i++) {
    const hash = createHash('sha256').update(`${seed}.${i}`).digest().readUInt32BE(0);
    if (Math.clz32(hash) === bits) return String(i);
  }
}

it('is issued with all that a client needs, another seed each time', () => {
  now = NOW;
  const issued = work().issue(HOLDER);
  expect(issued).toEqual({
    ...{ type: 'proof-of-work', algorithm: 'SHA-256', bits: BITS },
    seed: expect.stringMatching(new RegExp(`^1\\.${EXPIRES / 1_000}\\.[\\w-]{16}\\.[\\w-]{43}$`)),
    expiresAt: new Date(EXPIRES).toISOString(),
  });
  expect(work().issue(HOLDER).seed).not.toBe(issued.seed);
});

it('is right until it expires, and for nobody else', () => {
  now = NOW;
  const { seed } = work().issue(HOLDER);
  const answer = { seed, solution: solutionOf(seed) };
  expect(work().verify(answer, HOLDER)).toBe(true);
  expect(work().verify(answer, { ...HOLDER, buyerId: 'ben' })).toBe(false);
  expect(work().verify(answer, { ...HOLDER, saleId: 'other' })).toBe(false);
  expect(work([key(1)], BITS - 1).verify(answer, HOLDER)).toBe(false);
  expect(work([key(2)]).verify(answer, HOLDER)).toBe(false);
  now = EXPIRES - 1;
  expect(work().verify(answer, HOLDER)).toBe(true);
  now = EXPIRES;
  expect(work().verify(answer, HOLDER)).toBe(false);
});

it('is right while keys are changed: the first signs, all are accepted', () => {
  now = NOW;
  const { seed } = work([key(1), key(2)]).issue(HOLDER);
  const answer = { seed, solution: solutionOf(seed) };
  expect(work([key(2), key(1)]).verify(answer, HOLDER)).toBe(true);
  expect(work([key(2)]).verify(answer, HOLDER)).toBe(false);
});

it('needs all zero bits', () => {
  now = NOW;
  const { seed } = work().issue(HOLDER);
  expect(work().verify({ seed, solution: solutionOf(seed, BITS - 1) }, HOLDER)).toBe(false);
  expect(work().verify({ seed, solution: solutionOf(seed, BITS + 1) }, HOLDER)).toBe(true);
});

it('is wrong in any other form', () => {
  now = NOW;
  const { seed } = work([key(1)], 1).issue(HOLDER);
  const right = (solution: unknown) =>
    createHash('sha256').update(`${seed}.${solution}`).digest().readUInt32BE(0) >>> 31 === 0;
  /** Forms of a solution whose hash would do. */
  const some = (form: (i: number) => string) => form([...Array(99).keys()].find((i) => right(form(i)))!);
  const verdict = (answer: unknown) => work([key(1)], 1).verify(answer, HOLDER);
  expect(verdict({ seed, solution: some(String) })).toBe(true);
  expect(verdict({ seed, solution: some((i) => String(i).padStart(20, '0')) })).toBe(true);
  for (const form of [
    (i: number) => `x${i}`,
    (i: number) => `${i}x`,
    (i: number) => String(i).padStart(21, '0'),
  ])
    expect(verdict({ seed, solution: some(form) })).toBe(false);
  expect(verdict({ seed, solution: [...Array(99).keys()].find(right) })).toBe(false);
  const solution = some(String);
  for (const other of [undefined, null, 'x', 5, [], {}, { seed }, { solution }, { seed: 5, solution }])
    expect(verdict(other), JSON.stringify(other)).toBe(false);
  for (const other of ['', `x${seed}`, `${seed}x`, seed.replace(/^1/, '2'), seed.slice(0, -1)])
    expect(verdict({ seed: other, solution: solutionOf(other, 1) }), other).toBe(false);
});
