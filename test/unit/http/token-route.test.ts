/** A request for a purchase token has one deadline, whatever it waits for. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Challenge, ChallengeCaller } from '../../../src/admission/challenge.ts';
import { PurchaseTokens } from '../../../src/admission/purchase-token.ts';
import type { SaleRecord } from '../../../src/engine/contract.ts';
import type { Identity } from '../../../src/http/identity/identity.ts';
import { type TokenOutcome, tokenRoute } from '../../../src/http/public/token-route.ts';
import type { Body } from '../../../src/http/server/body.ts';
import type { Exchange } from '../../../src/http/server/exchange.ts';
import type { HttpRequest } from '../../../src/http/server/http-request.ts';
import { elapse, freezeTime, settledTurns } from '../../support/engine/frozen-time.ts';

const DEADLINE_MS = 1_000;
const ANN: Identity = { buyerId: 'ann' };
const RECORD = { generation: 1, sale: { id: 'tickets', startsAt: 0 } } as SaleRecord;

const after = <T>(ms: number, value: T): Promise<T> =>
  new Promise((resolve) => setTimeout(resolve, ms, value));
const never = () => new Promise<never>(() => {});

interface Steps {
  readonly identity?: () => Identity | Promise<Identity>;
  readonly record?: () => Promise<SaleRecord | undefined>;
  readonly challenge?: Partial<Challenge>;
}

/** @returns how it has ended so far */
function ask({ identity = () => ANN, record = async () => RECORD, challenge }: Steps, text = '') {
  const ended: TokenOutcome[] = [];
  const faults: unknown[] = [];
  const fault = (error: unknown) => faults.push(error);
  const handler = tokenRoute({
    authenticate: identity,
    tokens: new PurchaseTokens({ keys: [new Uint8Array(32)], ttlSeconds: 300 }),
    challenge: challenge && new ChallengeCaller({ issue: never, verify: never, ...challenge }, fault),
    readRecord: record,
    readDeadlineMs: DEADLINE_MS,
    tokenAnswered: (outcome) => ended.push(outcome),
    fault,
  });
  const exchange = {
    readBody: (_: HttpRequest, done: (body: Body) => void) => done({ text }),
    reply: () => {},
  };
  handler(exchange as unknown as Exchange, { getParameter: () => 'tickets' } as unknown as HttpRequest);
  return { ended, faults };
}

beforeEach(() => freezeTime());
afterEach(() => vi.useRealTimers());

describe('one deadline', () => {
  test.each<[string, Steps]>([
    ['who cannot be known', { identity: never }],
    ['whose sale is read slowly', { identity: () => after(900, ANN), record: () => after(900, RECORD) }],
    ['whose challenge hangs behind that', { record: () => after(900, RECORD), challenge: { issue: never } }],
    [
      'which waits for all of them',
      {
        identity: () => after(400, ANN),
        record: () => after(400, RECORD),
        challenge: { issue: () => after(400, 'a riddle') },
      },
    ],
  ])('is that of a buyer %s', async (_, steps) => {
    const { ended } = ask(steps);
    // In steps: each wait begins when the one before has ended.
    for (let ms = 0; ms < DEADLINE_MS - 100; ms += 100) await elapse(100);
    expect(ended).toEqual([]);
    await elapse(100);
    expect(ended).toEqual(['unavailable']);
    await elapse(10 * DEADLINE_MS);
    expect(ended).toEqual(['unavailable']);
  });

  test('is sufficient for a client that needs less', async () => {
    const steps: Steps = { identity: () => after(300, ANN), record: () => after(300, RECORD) };
    const plain = ask(steps);
    const asked = ask({ ...steps, challenge: { issue: () => after(300, 'a riddle') } });
    const solved = ask({ ...steps, challenge: { verify: () => after(300, true) } }, '{"answer":1}');
    for (let ms = 0; ms < DEADLINE_MS - 100; ms += 100) await elapse(100);
    expect([plain, asked, solved].map(({ ended }) => ended)).toEqual([
      ['issued'],
      ['challenge_required'],
      ['issued'],
    ]);
  });
});

test.each<[string, Partial<Challenge>]>([
  [
    'throws',
    {
      issue: () => {
        throw new Error('away');
      },
    },
  ],
  ['rejects with nothing', { issue: () => Promise.reject(undefined) }],
  ['issues nothing', { issue: () => undefined }],
  ['issues a function', { issue: () => () => 1 }],
  ['issues what JSON can’t hold', { issue: () => ({ amount: 1n }) }],
])('a challenge that %s is answered as unavailable, and reported', async (_, challenge) => {
  const { ended, faults } = ask({ challenge });
  await settledTurns();
  expect(ended).toEqual(['unavailable']);
  expect(faults).toMatchObject([{ code: 'challenge_broken' }]);
});

test('a challenge is answered as it was issued, even if the module changes the object afterwards', async () => {
  const riddle = { question: 'where?', self: undefined as unknown };
  const desk = new ChallengeCaller({ issue: () => riddle, verify: () => true }, () => {});
  const reply = await desk.issue({ saleId: 'tickets', buyerId: 'ann' }, DEADLINE_MS);
  riddle.self = riddle;
  expect(reply).toEqual({ kind: 'issued', challenge: { question: 'where?' } });
});
