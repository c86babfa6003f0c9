/**
 * A queue after the last fault. Free units go to those who wait, in their order, also when units are added, the sale is rebuilt, and a
 * unit comes back; and the head tells from which place on nothing can come. Then the queue is turned off, and the sale sells its last units.
 */
import type { SaleChange } from '../../../src/engine/sale/sale-change.ts';
import { firstHopeless, offeredUnits } from '../audit/hopes.ts';
import type { PlaceTruth } from '../audit/queue-watch.ts';
import { ask, type FinaleParts, LOOK_EVERY_MS, MAX_ASKED, settle } from '../ending/calm.ts';
import { time } from '../machines/virtual-time.ts';
import type { People } from './people.ts';
import { MANY } from './queue-plan.ts';

const BY = { actor: 'sim', reason: '' };
const CANCEL = { kind: 'cancel' } as const;
/** The head tells once a second, and looks again within that time. */
const TOLD_MS = 2_500;
/** In calm weather, free units are offered within this time. */
const OFFERED_MS = 5_000;
const NEWCOMERS = 6;

export async function queueFinale(parts: FinaleParts, people: People): Promise<void> {
  const { auditor, scenario } = parts;
  const plan = scenario.queue!;
  const watch = auditor.queue!;
  people.isCalm = true;
  if (auditor.truth!.state !== 'closed') {
    const { order, fit, presenceSeconds } = plan;
    await change(parts, { action: 'queue', queue: order, fit, presenceSeconds, maxWaiting: MANY });
    await settle(parts, 'free units are offered', () => nobodyWaits(parts));
    watch.isCalm = true;
    await change(parts, { action: 'pause' });
    people.newcomers(Array.from({ length: NEWCOMERS }, (_, i) => `new${i}`));
    await change(parts, { action: 'top-up', units: 2 });
    await parts.pass(TOLD_MS);
    await checkHopeless(parts);
    await change(parts, { action: 'resume' });
    await untilOffered(parts, 'the sale is resumed');
    await change(parts, { action: 'resize', segments: (auditor.truth!.segments % 3) + 1 });
    await change(parts, { action: 'top-up', units: 1 });
    await untilOffered(parts, 'the sale is resized');
    await parts.pass(TOLD_MS);
    await checkHopeless(parts);
    if (await giveBack(parts)) await untilOffered(parts, 'a unit came back');
    await change(parts, { action: 'queue', queue: 'off' });
  }
  watch.isCalm = false;
  people.end();
  await settle(parts, 'the queue is over');
}

/** The auditor checks meanwhile, because people go on. Tried again like `ask`. */
async function change({ nodes, auditor, pass }: FinaleParts, what: SaleChange): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const node = nodes.find(({ running }) => running)!;
    let end: 'done' | { error: unknown } | undefined;
    auditor.trace(`${node.name} is to ${JSON.stringify(what)}`);
    const act = () => {
      node.running!.service.change(auditor.saleId, what, BY).then(
        () => {
          end = 'done';
        },
        (error) => {
          end = { error };
        },
      );
    };
    time.after(0, act, node.machine);
    while (!end) await pass(1);
    if (end === 'done') return;
    if (attempt === MAX_ASKED) auditor.fail(`P7: asked ${attempt} times in calm weather: ${end.error}`);
    await pass(LOOK_EVERY_MS);
  }
}

/** Q3: free units that the next place could have, by the settings of the queue. */
function nobodyWaits({ auditor }: FinaleParts): boolean {
  const { stock, state } = auditor.truth!;
  const { fit, isOn } = auditor.queue!.truth!;
  const waiting = auditor.queue!.waiting();
  if (state !== 'open' || !isOn || stock === 0 || waiting.length === 0) return true;
  const fits = ({ quantity }: { quantity: number }) => quantity <= stock || fit === 'less';
  return fit === 'pass' ? !waiting.some(fits) : !fits(waiting[0]!);
}

async function untilOffered(parts: FinaleParts, since: string): Promise<void> {
  const { auditor, pass } = parts;
  const until = time.now + OFFERED_MS;
  for (; parts.world.postgres.isInTransaction || !nobodyWaits(parts); await pass(LOOK_EVERY_MS))
    if (time.now > until)
      auditor.fail(
        `Q3: ${since}, and ${auditor.truth!.stock} units wait for nobody: ${JSON.stringify(auditor.queue!.truth!.places)}`,
      );
}

/** A buyer cancels an order that it has accepted. @returns whether anybody has one */
async function giveBack(parts: FinaleParts): Promise<boolean> {
  const { auditor, world, pass } = parts;
  while (world.postgres.isInTransaction) await pass(LOOK_EVERY_MS);
  const { places, orders } = auditor.queue!.truth!;
  const isKept = ({ state, order }: PlaceTruth) =>
    state === 'bought' && ['unpaid', 'paid'].includes(orders[order!]!.status);
  const orderId = places.find(isKept)?.order;
  if (!orderId) return false;
  auditor.askedBack.add(orderId);
  const { kind } = CANCEL;
  const outcome = await ask(parts, (running) => running.orders.changeOrder(orderId, CANCEL, BY));
  auditor.orders.told(orderId, kind, outcome);
  return true;
}

/** Q5, while nothing happens. With presence, those who are absent don't count. */
async function checkHopeless({ auditor, scenario, pass, world }: FinaleParts): Promise<void> {
  if (scenario.queue!.presenceSeconds > 0) return;
  for (const until = time.now + OFFERED_MS; ; await pass(LOOK_EVERY_MS)) {
    if (world.postgres.isInTransaction) continue;
    const told = auditor.queue!.truth!;
    const coming = auditor.truth!.stock + offeredUnits(told);
    const watch = auditor.queue!;
    const from = told.hopelessFrom ?? Number.POSITIVE_INFINITY;
    const first = watch.waiting().find(({ number }) => watch.rankOf(number) >= from);
    const right = firstHopeless(watch.waiting(), told.fit, coming);
    if (first?.number === right?.number) return;
    if (time.now > until)
      auditor.fail(
        `Q5: ${coming} units may come, and the first hopeless place is ${first?.number}, not ${right?.number}: ${JSON.stringify(told.places)}`,
      );
  }
}
