/** Everything that can happen to a queue, one step at a time, each with its effect on the model. */
import fc from 'fast-check';
import { expect } from 'vitest';
import { Expiry } from '../../../src/orders/expiry.ts';
import { applyReturnsOf } from '../../../src/orders/returns.ts';
import { acceptOffer } from '../../../src/queue/offers.ts';
import { givePlaces, leaveQueue } from '../../../src/queue/places.ts';
import { BY } from '../../support/author.ts';
import { aged } from '../../support/shop/orders.ts';
import type { ModelPlace, QueueModel } from './queue-model.ts';
import type { QueueTrial } from './queue-trial.ts';

type QueueCommand = fc.AsyncCommand<QueueModel, QueueTrial>;

const BUYERS = ['anna', 'ben', 'cleo', 'dora', 'emil', 'fay', 'gus', 'hal', 'ida', 'jon', 'kim', 'lou'];
const buyer = fc.constantFrom(...BUYERS);
const NOTHING = fc.constant(undefined);

function command<A>(
  weight: number,
  name: string,
  args: fc.Arbitrary<A>,
  run: (trial: QueueTrial, args: A) => Promise<void>,
  when: (model: QueueModel) => boolean = () => true,
): fc.WeightedArbitrary<QueueCommand> {
  const arbitrary = args.map((given) => ({
    check: (model: Readonly<QueueModel>) => when(model as QueueModel),
    run: async (_: QueueModel, trial: QueueTrial) => {
      await run(trial, given);
      await trial.check();
    },
    toString: () => `${name} ${JSON.stringify(given)}`,
  }));
  return { weight, arbitrary };
}

const isOpen = ({ state }: QueueModel) => state !== 'closed';

const wishes = fc.uniqueArray(fc.record({ buyerId: buyer, quantity: fc.integer({ min: 1, max: 3 }) }), {
  selector: ({ buyerId }) => buyerId,
  minLength: 1,
  maxLength: 6,
});

const place = command(10, 'place', wishes, async ({ shop, saleId, model }, asked) => {
  const given = await givePlaces(shop.db, saleId, asked);
  for (const { buyerId, quantity } of asked) {
    model.give(buyerId, quantity);
    const live = model.live(buyerId);
    expect(given.get(buyerId)?.number).toBe(live && model.places.indexOf(live) + 1);
  }
});

const leave = command(4, 'leave', buyer, async ({ shop, saleId, model }, buyerId) => {
  const left = await leaveQueue(shop.db, saleId, buyerId);
  const live = model.live(buyerId);
  expect(left?.place.state).toBe(live && 'left');
  expect(left?.returned).toBe(live?.state === 'offered' ? live.orderId : undefined);
  if (live) model.end(live, 'left');
  if (left?.returned !== undefined) await applyReturnsOf(shop.db, shop.backend, [left.returned]);
});

const offer = command(10, 'offer', NOTHING, (trial) => trial.offer());

function verdictOf({ state, overdue }: ModelPlace, model: QueueModel): string {
  if (state === 'bought') return 'done';
  if (state !== 'offered') return 'late';
  // While the sale is paused, no offer ends.
  if (model.state === 'paused') return 'paused';
  return overdue ? 'late' : 'done';
}

const accept = command(8, 'accept', fc.tuple(buyer, buyer), async ({ shop, model }, [buyerId, other]) => {
  const newest = model.newest(buyerId);
  if (newest?.orderId === undefined) return;
  const { orderId, units } = newest;
  const ask = async (by: string, quantity: number) =>
    (await acceptOffer(shop.db, { orderId, buyerId: by, quantity }))?.verdict;
  if (other !== buyerId) expect(await ask(other, units)).toBe('forbidden');
  expect(await ask(buyerId, units + 1)).toBe('quantity');
  const verdict = verdictOf(newest, model);
  expect(await ask(buyerId, units), JSON.stringify(newest)).toBe(verdict);
  if (verdict === 'done') newest.state = 'bought';
});

const age = command(3, 'the time of an offer is over', buyer, async ({ shop, model }, buyerId) => {
  const live = model.live(buyerId);
  if (live?.state !== 'offered') return;
  await aged(shop, [live.orderId!]);
  live.overdue = true;
});

const lapse = command(3, 'lapse', NOTHING, async ({ shop, model }) => {
  const failures: unknown[] = [];
  const events = { expired() {}, failed: ({ error }: { error: unknown }) => failures.push(error) };
  const expiry = new Expiry({ db: shop.db, backend: shop.backend, events });
  expiry.start();
  await expiry.stop();
  expect(failures).toEqual([]);
  if (model.state === 'paused') return;
  for (const one of model.places) if (one.state === 'offered' && one.overdue) model.end(one, 'lapsed');
});

/** A buyer gives back what it has bought. */
const cancel = command(3, 'cancel', buyer, async ({ shop, model }, buyerId) => {
  const bought = model.places.find(
    (one) => one.buyerId === buyerId && one.state === 'bought' && !one.isReturned,
  );
  if (!bought) return;
  const orders = shop.orders(() => Promise.reject(new Error('nobody pays')));
  expect(await orders.changeOrder(bought.orderId!, { kind: 'cancel' }, BY)).toMatchObject({ code: 'done' });
  bought.isReturned = true;
  model.free += bought.units;
});

const setState = command(
  3,
  'set state',
  fc.constantFrom('pause' as const, 'resume' as const),
  async ({ shop, saleId, model }, action) => {
    await shop.service.change(saleId, { action }, BY);
    if (action === 'resume') model.endPause();
    model.state = action === 'pause' ? 'paused' : 'open';
  },
  isOpen,
);

const topUp = command(
  4,
  'top up',
  fc.integer({ min: 1, max: 3 }),
  async ({ shop, saleId, model }, units) => {
    await shop.service.change(saleId, { action: 'top-up', units }, BY);
    model.free += units;
  },
  isOpen,
);

const resize = command(
  1,
  'resize',
  fc.integer({ min: 1, max: 4 }),
  async ({ shop, saleId }, segments) => {
    await shop.service.change(saleId, { action: 'resize', segments }, BY);
  },
  isOpen,
);

const close = command(
  1,
  'close',
  NOTHING,
  async ({ shop, saleId, model }) => {
    await shop.service.change(saleId, { action: 'close' }, BY);
    model.endPause();
    model.state = 'closed';
  },
  isOpen,
);

export function queueCommands(maxCommands: number): fc.Arbitrary<Iterable<QueueCommand>> {
  const all = [place, leave, offer, accept, age, lapse, cancel, setState, topUp, resize, close];
  return fc.commands([fc.oneof(...all)], { maxCommands, size: 'max' });
}
