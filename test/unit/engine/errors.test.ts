/** What callers read from the errors: the code, the values and the cause. */
import { expect, it } from 'vitest';
import {
  BackendCorrupt,
  Busy,
  InvalidInput,
  isBusy,
  NotExecuted,
  OutcomeUnknown,
  StaleGeneration,
  StockadeError,
} from '../../../src/engine/errors.ts';
import { ForbiddenTransition, type LivePurchase } from '../../../src/engine/purchase/purchase.ts';
import { Contested } from '../../../src/events/sole-loop.ts';
import { LockLost, LockMoved, LockNotAcquired } from '../../../src/locks/lock-errors.ts';
import { CursorMoved, GuardRefused } from '../../../src/sync/apply/apply.ts';

const CAUSE = new Error('why');

it.each<[StockadeError, string, object, Error | undefined]>([
  [new NotExecuted('no connection', CAUSE), 'not_executed', { message: 'no connection' }, CAUSE],
  [new Busy('full'), 'busy', { message: 'full' }, undefined],
  [new OutcomeUnknown('no reply', CAUSE), 'outcome_unknown', { message: 'no reply' }, CAUSE],
  [
    new InvalidInput('the sale', [
      { field: 'stock', problem: 'must be above 0' },
      { field: 'name', problem: 'is missing' },
    ]),
    'invalid_request',
    {
      message: 'the sale: stock must be above 0; name is missing',
      faults: [
        { field: 'stock', problem: 'must be above 0' },
        { field: 'name', problem: 'is missing' },
      ],
    },
    undefined,
  ],
  [new BackendCorrupt('a counter'), 'backend_corrupt', { message: 'a counter' }, undefined],
  [
    new StaleGeneration('sale', 7),
    'stale_generation',
    { message: expect.stringMatching(/sale sale .* generation 7/) },
    undefined,
  ],
  [
    new LockLost('row', 7, 'it expired', CAUSE),
    'lock_lost',
    { lock: 'row', token: 7, message: expect.stringMatching(/row .*7.* it expired/) },
    CAUSE,
  ],
  [new LockMoved('moved', 'me', CAUSE), 'lock_moved', { owner: 'me', message: 'moved' }, CAUSE],
  [
    new LockNotAcquired('row', 'too late', CAUSE),
    'lock_not_acquired',
    { lock: 'row', message: expect.stringMatching(/row .* too late/) },
    CAUSE,
  ],
  [
    new ForbiddenTransition(
      { orderId: '', buyerId: 'anna', saleId: 'sale', state: 'queued' } as LivePurchase,
      'commit',
    ),
    'forbidden_transition',
    { message: expect.stringMatching(/anna .* sale .*not named yet.* is queued: "commit"/) },
    undefined,
  ],
  [new Contested(), 'contested', {}, undefined],
  [new CursorMoved(CAUSE), 'cursor_moved', {}, CAUSE],
  [
    new GuardRefused('limit', CAUSE),
    'guard_refused',
    { reason: 'limit', message: expect.stringContaining('limit') },
    CAUSE,
  ],
])('%s', (error, code, values, cause) => {
  expect(error).toBeInstanceOf(StockadeError);
  expect(error).toMatchObject({ code, name: error.constructor.name, ...values });
  expect(error.cause).toBe(cause);
});

it('an error from another thread is busy by its code', () => {
  expect([new StockadeError('busy', 'full'), new Busy('full')].map(isBusy)).toEqual([true, true]);
  const others = [
    new StockadeError('not_executed', 'x'),
    Object.assign(new Error('x'), { code: 'busy' }),
    undefined,
  ];
  expect(others.map(isBusy)).toEqual([false, false, false]);
});
