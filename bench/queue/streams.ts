/**
 * Buyers who listen to their places, beside a crowd that buys in another sale:
 *
 *   crowd ──> the same crowd, while every second each listener is told something new ──> crowd
 *
 * Each second the first of those who wait leaves, so that everybody behind has one person less ahead.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { note } from '../../src/cli/terminal/output.ts';
import { givePlaces } from '../../src/queue/places.ts';
import type { Measurement } from '../http/measure.ts';
import { BenchFailure } from '../support/failure.ts';
import { count, rounded } from '../support/figures.ts';
import { Askers } from './crowd/askers.ts';
import type { Stage } from './stage.ts';

const PROGRAM = fileURLToPath(new URL('./crowd/listening-places.mjs', import.meta.url));
const SALE = 'streams';
/** Ahead of the listeners, to leave one after the other. */
const AHEAD = 1_000;
const BATCH = 1_024;
const PRESENCE_S = 3_600;
const EVERY_MS = 1_000;
const POLL_MS = 200;
const LIMIT_MS = 120_000;

export interface Streams {
  readonly listeners: number;
  /** What each listener was told per second; 1 if it missed nothing. */
  readonly toldPerSecond: number;
  /** The crowd's purchases per second, alone and beside the listeners, and the one divided by the other. */
  readonly alonePerSecond: number;
  readonly besidePerSecond: number;
  readonly ratio: number;
  readonly crowdP99Ms: number;
  /** The node's processor time for each event, in microseconds: what it used beyond the crowd's purchases. */
  readonly nodeCpuMicros: number | undefined;
}

export async function measureStreams(stage: Stage): Promise<Streams> {
  const { listeners } = stage.parameters;
  await stage.createSale({ id: SALE, stock: 1, queue: 'fifo', presenceSeconds: PRESENCE_S });
  await givePlacesTo(stage, listeners);
  const before = await crowd(stage, 'before-streams');
  const { beside, events } = await besideListeners(stage, listeners);
  const after = await crowd(stage, 'after-streams');
  const alonePerSecond = (before.requestsPerSecond + after.requestsPerSecond) / 2;
  const streams = {
    listeners,
    toldPerSecond: rounded(events.perSecond / listeners, 2),
    alonePerSecond: rounded(alonePerSecond, 0),
    besidePerSecond: rounded(beside.requestsPerSecond, 0),
    ratio: rounded(beside.requestsPerSecond / alonePerSecond, 3),
    crowdP99Ms: rounded(beside.p99Ms, 1),
    nodeCpuMicros: microsOfEvent(beside, events.perSecond, [before, after]),
  };
  note(
    `${count(listeners)} listeners, told ${streams.toldPerSecond} times a second; the crowd beside them has ${streams.ratio} of its rate`,
  );
  return streams;
}

/** One unit, which goes to the first place; those who will leave; and the listeners. */
async function givePlacesTo({ db }: Stage, listeners: number): Promise<void> {
  const ahead = Array.from({ length: AHEAD }, (_, i) => `leaver-${i}`);
  const behind = Array.from({ length: listeners }, (_, i) => `listener-${i + 1}`);
  const buyers = [...ahead, ...behind];
  for (let from = 0; from < buyers.length; from += BATCH)
    await givePlaces(
      db,
      SALE,
      buyers.slice(from, from + BATCH).map((buyerId) => ({ buyerId, quantity: 1 })),
    );
}

/** Each crowd has the same buyers, so it comes to a sale of its own. */
async function crowd(stage: Stage, saleId: string): Promise<Measurement> {
  await stage.createSale({ id: saleId, stock: 10_000_000 });
  return stage.load({ url: `${stage.node.publicUrl}/v1/sales/${saleId}/orders` });
}

async function besideListeners(
  stage: Stage,
  listeners: number,
): Promise<{ readonly beside: Measurement; readonly events: { readonly perSecond: number } }> {
  const { port } = new URL(stage.node.publicUrl);
  const program = fork(PROGRAM, [port, SALE, String(listeners)]);
  const leaving = new AbortController();
  try {
    await untilAllListen(program, listeners);
    const leavers = leaveOneByOne(stage, leaving.signal);
    const told = meterOf(program);
    await told();
    const beside = await crowd(stage, 'beside-streams');
    const perSecond = await told();
    leaving.abort();
    await leavers;
    return { beside, events: { perSecond } };
  } finally {
    leaving.abort();
    program.disconnect();
  }
}

interface Seen {
  readonly listening: number;
  readonly refused: number;
  readonly events: number;
}

async function seenBy(program: ChildProcess): Promise<Seen> {
  program.send({});
  const [seen] = await once(program, 'message');
  return seen;
}

async function untilAllListen(program: ChildProcess, listeners: number): Promise<void> {
  const deadline = Date.now() + LIMIT_MS;
  for (;;) {
    const seen = await seenBy(program);
    if (seen.listening === listeners) return;
    if (seen.refused > 0 || Date.now() > deadline)
      throw new BenchFailure(
        `${seen.listening} of ${listeners} listen, ${seen.refused} were refused: use fewer --listeners`,
      );
    await delay(POLL_MS);
  }
}

/** @returns a function that gives the events per second since it was called last */
function meterOf(program: ChildProcess): () => Promise<number> {
  let last = { events: 0, atMs: performance.now() };
  return async () => {
    const { events } = await seenBy(program);
    const atMs = performance.now();
    const perSecond = ((events - last.events) * 1_000) / (atMs - last.atMs);
    last = { events, atMs };
    return perSecond;
  };
}

async function leaveOneByOne({ node }: Stage, signal: AbortSignal): Promise<void> {
  const askers = await Askers.open(node.publicUrl, 1);
  let dueAt = performance.now();
  // The first place has the unit.
  for (let i = 1; i < AHEAD && !signal.aborted; i++) {
    await askers.ask({ method: 'DELETE', path: `/v1/sales/${SALE}/place`, buyerId: `leaver-${i}` });
    dueAt += EVERY_MS;
    await delay(Math.max(0, dueAt - performance.now()), undefined, { signal }).catch(() => {});
  }
  askers.close();
}

function microsOfEvent(
  beside: Measurement,
  eventsPerSecond: number,
  [before, after]: readonly [Measurement, Measurement],
): number | undefined {
  if (beside.nodeCpuMicros === undefined || before.nodeCpuMicros === undefined || !after.nodeCpuMicros)
    return undefined;
  const purchase = (before.nodeCpuMicros + after.nodeCpuMicros) / 2;
  const more = (beside.nodeCpuMicros - purchase) * beside.requestsPerSecond;
  // With few listeners it is less than the purchases vary.
  return more > 0 ? rounded(more / eventsPerSecond, 1) : undefined;
}
