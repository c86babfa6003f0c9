/**
 * The same rush with a queue and without: many people for few units, and a part of those who get one does not pay, so that it comes
 * back. Both ways people stay to the end, or give up some time after they were told that nothing is left.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { note } from '../../src/cli/terminal/output.ts';
import { rows } from '../../src/postgres/database.ts';
import { measureCpu } from '../support/cpu-meter.ts';
import { count, rounded } from '../support/figures.ts';
import { Askers } from './crowd/askers.ts';
import { live, type PersonPlan, type PersonStory } from './crowd/person.ts';
import { type FreedUnits, readFreedUnits } from './freed-units.ts';
import type { Stage } from './stage.ts';

/** Of ten people, so many do not pay. */
const UNPAID_IN_TEN = 3;
/** In minutes of the rush: how long everybody takes to come, how long an offer and an unpaid order stand. */
const ARRIVAL_MINUTES = 1 / 3;
const OFFER_MINUTES = 2;
const PAY_MINUTES = 2;
/** In minutes of the rush: how long people go on, on average, who were told that nothing is left. */
const PATIENCE_MINUTES = 1;
const THINK_MINUTES = 1 / 6;

export interface Rush {
  readonly hasQueue: boolean;
  readonly giveUp: boolean;
  /** Requests that were answered. */
  readonly requests: number;
  readonly requestsPerSecond: number;
  /** Processor time of the node and of its stores, in seconds; `undefined` where the system does not report it. */
  readonly cpuSeconds: number | undefined;
  /** Units that are paid at the end. */
  readonly sold: number;
  readonly unsold: number;
  /** In milliseconds of the run, not of the rush. */
  readonly units: FreedUnits;
  /** People who stayed to the end and got neither a unit nor an offer, while somebody who had come later got a unit. */
  readonly overtaken: number;
  /** In minutes of the rush, of people who got nothing: until they left or it ended; and until they were told. */
  readonly inVain: {
    readonly people: number;
    readonly meanMinutes: number;
    readonly untilToldMinutes: number;
  };
  /** Answers that nobody expects, by code. */
  readonly odd: Readonly<Record<string, number>>;
}

export async function measureRush(stage: Stage): Promise<Rush[]> {
  const rushes: Rush[] = [];
  for (const giveUp of [false, true])
    for (const hasQueue of [true, false]) rushes.push(await measureOne(stage, { hasQueue, giveUp }));
  return rushes;
}

async function measureOne(stage: Stage, way: Pick<Rush, 'hasQueue' | 'giveUp'>): Promise<Rush> {
  const { node, db, parameters } = stage;
  const { minuteMs, minutes, people, units } = parameters;
  const saleId = `rush-${way.hasQueue ? 'queue' : 'none'}-${way.giveUp ? 'impatient' : 'patient'}`;
  await createRushSale(stage, saleId, way.hasQueue);
  const askers = await Askers.open(node.publicUrl, parameters.connections);
  const used = measureCpu(stage.cpu);
  const began = performance.now();
  const endsAt = began + minutes * minuteMs;
  const plans = { ...way, askers, saleId, endsAt };
  const stories = Array.from({ length: people }, (_, i) => live(personOf(parameters, plans, i)));
  await delay(endsAt - performance.now());
  const endMs = Date.now();
  const sold = await paidOf(stage, saleId);
  const freed = await readFreedUnits(db, saleId, { stock: units, endMs });
  const { requests } = askers;
  const { node: nodeS, redis, postgres } = used();
  const told = await Promise.all(stories);
  askers.close();
  const cpu = nodeS === undefined ? undefined : nodeS + redis! + postgres!;
  const rush = {
    ...way,
    requests,
    requestsPerSecond: rounded((requests * 1_000) / (minutes * minuteMs), 0),
    cpuSeconds: cpu === undefined ? undefined : rounded(cpu, 1),
    sold,
    unsold: units - sold,
    units: freed,
    overtaken: overtakenOf(told),
    inVain: inVainOf(told, minuteMs),
    odd: oddOf(told),
  };
  note(
    `rush ${way.hasQueue ? 'with' : 'without'} a queue${way.giveUp ? ', people give up' : ''}: ${count(requests)} requests, ` +
      `${sold} sold, ${freed.left} left over, free for ${freed.p50Ms} ms (at most ${freed.maxMs}), ${rush.overtaken} overtaken`,
  );
  return rush;
}

async function createRushSale(stage: Stage, id: string, hasQueue: boolean): Promise<void> {
  const { minuteMs, askEveryMs, units: stock } = stage.parameters;
  const seconds = (minutes: number) => Math.max(1, Math.round((minutes * minuteMs) / 1_000));
  const sale = { id, stock, payWithinSeconds: seconds(PAY_MINUTES) };
  // Whoever asks is present until the next request, however busy the machine is.
  const presenceSeconds = Math.ceil((2 * askEveryMs) / 1_000);
  await stage.createSale(
    hasQueue ? { ...sale, queue: 'fifo', offerSeconds: seconds(OFFER_MINUTES), presenceSeconds } : sale,
  );
}

function personOf(
  { minuteMs, askEveryMs }: Stage['parameters'],
  { giveUp, ...plan }: Pick<PersonPlan, 'askers' | 'saleId' | 'endsAt' | 'hasQueue'> & { giveUp: boolean },
  number: number,
): PersonPlan {
  return {
    ...plan,
    buyerId: `person-${number}`,
    pays: number % 10 >= UNPAID_IN_TEN,
    arrivesAfterMs: Math.random() * ARRIVAL_MINUTES * minuteMs,
    askEveryMs,
    thinksMs: THINK_MINUTES * minuteMs,
    patienceMs: giveUp ? -Math.log(1 - Math.random()) * PATIENCE_MINUTES * minuteMs : undefined,
  };
}

async function paidOf({ db }: Stage, saleId: string): Promise<number> {
  const [found] = await rows<{ units: string }>(
    db,
    "SELECT coalesce(sum(quantity), 0) AS units FROM orders WHERE sale_id = ? AND status = 'paid'",
    [saleId],
  );
  return Number(found!.units);
}

function overtakenOf(stories: readonly PersonStory[]): number {
  let last = -1;
  for (const { order, orderId } of stories) if (orderId !== undefined) last = Math.max(last, order);
  return stories.filter(
    (story) => story.orderId === undefined && !story.gaveUp && !hadOffer(story) && story.order < last,
  ).length;
}

/** Whether it was told of an offer, or that was over before it asked again: on a busy machine, two shortened minutes are soon over. */
function hadOffer({ wasOffered, odd }: PersonStory): boolean {
  return wasOffered || odd.lapsed !== undefined;
}

function inVainOf(stories: readonly PersonStory[], minuteMs: number): Rush['inVain'] {
  const none = stories.filter(({ orderId }) => orderId === undefined);
  const mean = (ms: readonly number[]) =>
    ms.length === 0 ? 0 : rounded(ms.reduce((sum, each) => sum + each, 0) / ms.length / minuteMs, 2);
  return {
    people: none.length,
    meanMinutes: mean(none.map(({ arrivedAt, endedAt }) => endedAt - arrivedAt)),
    untilToldMinutes: mean(none.map(({ arrivedAt, toldAt, endedAt }) => (toldAt ?? endedAt) - arrivedAt)),
  };
}

function oddOf(stories: readonly PersonStory[]): Record<string, number> {
  const all: Record<string, number> = {};
  for (const { odd } of stories)
    for (const [code, times] of Object.entries(odd)) all[code] = (all[code] ?? 0) + times;
  return all;
}
