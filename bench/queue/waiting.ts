/** A long queue: what it takes in the stores, and what the head and those who ask cost while all wait. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { note } from '../../src/cli/terminal/output.ts';
import { rows } from '../../src/postgres/database.ts';
import { givePlaces } from '../../src/queue/places.ts';
import { markPresent } from '../../src/queue/presence.ts';
import { BenchFailure } from '../support/failure.ts';
import { count, rounded } from '../support/figures.ts';
import { median } from '../support/median.ts';
import { Askers } from './crowd/askers.ts';
import { besideEchoes, ratios } from './giving.ts';
import { type HeadRounds, measureHeadRounds } from './head-rounds.ts';
import { type Idle, measureIdle } from './idle.ts';
import { giveBack, offeredTo } from './returned-unit.ts';
import type { Stage } from './stage.ts';

const SCRIPT = fileURLToPath(new URL('./crowd/poll-request.lua', import.meta.url));
const SALE = 'waiting';
/** As a lane sends them at most. */
const BATCH = 1_024;
/** Buyers who ask. */
const ASKING = 4_096;
/** A day: nobody becomes absent while it is measured. */
const PRESENCE_S = 86_400;
const YEAR_S = 31_536_000;
/**
 * Connections that ask without a token, at most. Each of these polls is read from Postgres, and if more wait than a slow machine reads within
 * half a second, the node answers `busy`.
 */
const READING_CONNECTIONS = 128;
const buyerOf = (number: number) => `buyer-${number}`;

export interface Polls {
  readonly perSecond: number;
  readonly ratio: number;
  readonly cpuRatio: number | undefined;
  readonly p99Ms: number;
  readonly nodeCpuMicros: number | undefined;
  readonly postgresCpuMicros: number | undefined;
}

export interface Waiting {
  readonly places: number;
  /** Places given per second by one caller, in batches: of the first tenth, and of the last. */
  readonly givenPerSecond: { readonly first: number; readonly last: number };
  readonly bytesPerPlace: { readonly redis: number; readonly postgres: number };
  readonly headRound: HeadRounds;
  /** While nobody asks. */
  readonly idle: Idle | undefined;
  readonly polls: { readonly withToken: Polls; readonly withoutToken: Polls };
  /** From a unit that is given back to the next offer, each a transaction of Postgres. */
  readonly returned: { readonly p50Ms: number; readonly maxMs: number };
  /** Places of absent buyers that the head passes per second. */
  readonly absentPassedPerSecond: number;
}

export async function measureWaiting(stage: Stage): Promise<Waiting> {
  const { waiting: places } = stage.parameters;
  await stage.createSale({
    ...{ id: SALE, stock: 1, queue: 'fifo', maxWaiting: 10_000_000 },
    ...{ presenceSeconds: PRESENCE_S, offerSeconds: YEAR_S },
  });
  await giveFirst(stage);
  const before = await stage.redisBytes();
  const givenPerSecond = await giveAll(stage, places);
  const redis = ((await stage.redisBytes()) - before) / places;
  const bytesPerPlace = { redis: rounded(redis, 2), postgres: await postgresBytes(stage) };
  note(
    `${count(places)} places: ${bytesPerPlace.postgres} bytes each, ${count(givenPerSecond.last)}/s in the end`,
  );
  await presentAll(stage, places);
  const headRound = await measureHeadRounds(stage, SALE);
  const idle = await measureIdle(stage);
  note(`a round of the head: ${headRound.p50Ms} ms, at most ${headRound.maxMs} ms`);
  const polls = await measurePolls(stage, places);
  note(
    `polls: ${count(polls.withToken.perSecond)}/s with a token, ${count(polls.withoutToken.perSecond)}/s without`,
  );
  const returned = await measureReturned(stage);
  note(`a unit that comes back is offered after ${returned.p50Ms} ms, at most ${returned.maxMs} ms`);
  const absentPassedPerSecond = await measureAbsent(stage, places);
  note(`${count(absentPassedPerSecond)} absent places are passed per second`);
  return { places, givenPerSecond, bytesPerPlace, headRound, idle, polls, returned, absentPassedPerSecond };
}

/** The only unit goes to the first place, so that all others wait. */
async function giveFirst({ db }: Stage): Promise<void> {
  await givePlaces(db, SALE, [{ buyerId: buyerOf(1), quantity: 1 }]);
  await offeredTo({ db }, SALE, 1);
}

async function giveAll({ db }: Stage, places: number): Promise<Waiting['givenPerSecond']> {
  const tookMs: number[] = [];
  for (let from = 2; from <= places; from += BATCH) {
    const many = Math.min(BATCH, places - from + 1);
    const wishes = Array.from({ length: many }, (_, i) => ({ buyerId: buyerOf(from + i), quantity: 1 }));
    const began = performance.now();
    const given = await givePlaces(db, SALE, wishes);
    if (given.get(buyerOf(from))?.number !== from) throw new BenchFailure(`place ${from} is another buyer's`);
    // The last batch may be a small one.
    if (many === BATCH) tookMs.push(performance.now() - began);
  }
  const tenth = Math.max(1, Math.floor(tookMs.length / 10));
  const rate = (of: readonly number[]) => rounded((of.length * BATCH * 1_000) / sum(of), 0);
  return { first: rate(tookMs.slice(0, tenth)), last: rate(tookMs.slice(-tenth)) };
}

async function postgresBytes({ db }: Stage): Promise<number> {
  const [found] = await rows<{ bytes: string }>(
    db,
    "SELECT round(pg_total_relation_size('places') / greatest(1, (SELECT count(*) FROM places))) AS bytes",
  );
  return Number(found!.bytes);
}

async function presentAll({ db }: Stage, places: number): Promise<void> {
  const PAGES = 65_536;
  for (let from = 1; from <= places; from += PAGES) {
    const many = Math.min(PAGES, places - from + 1);
    await markPresent(
      db,
      SALE,
      PRESENCE_S,
      Array.from({ length: many }, (_, i) => from + i),
    );
  }
  // As if the marks had been complete for long. Otherwise everybody would count as present for two periods.
  await db.raw(
    `INSERT INTO queue_presence (sale_id, period, page, present, since) VALUES (?, -1, 0, B'0'::bit(4096), now() - interval '1 year')
     ON CONFLICT (sale_id, period, page) DO UPDATE SET since = excluded.since`,
    [SALE],
  );
  await db.raw('ANALYZE places');
}

async function measurePolls(stage: Stage, places: number): Promise<Waiting['polls']> {
  const folder = await mkdtemp(join(tmpdir(), 'stockade-polls-'));
  try {
    // Behind the places whose turn may have come, which are read from Postgres.
    const from = Math.floor(places / 2);
    const step = Math.max(1, Math.floor((places - from) / ASKING));
    const numbers = Array.from({ length: Math.min(ASKING, places - from) }, (_, i) => from + 1 + i * step);
    const tokens = await tokensOf(stage, numbers);
    const polls = async (name: string, lines: readonly string[], connections: number): Promise<Polls> => {
      const path = join(folder, name);
      await writeFile(path, lines.map((line) => `${line}\n`).join(''));
      const url = stage.placeUrl(SALE);
      const compared = await besideEchoes(stage, () =>
        stage.load({ url, connections, script: { path: SCRIPT, args: [path] } }),
      );
      const { requestsPerSecond, p99Ms, nodeCpuMicros, postgresCpuMicros } = compared.measured;
      const { ratio, cpuRatio } = ratios([compared]);
      return {
        ...{ perSecond: rounded(requestsPerSecond, 0), ratio, cpuRatio, p99Ms: rounded(p99Ms, 2) },
        nodeCpuMicros: nodeCpuMicros && rounded(nodeCpuMicros, 1),
        postgresCpuMicros: postgresCpuMicros && rounded(postgresCpuMicros, 1),
      };
    };
    return {
      withToken: await polls(
        'with',
        numbers.map((number, i) => `${buyerOf(number)} ${tokens[i]}`),
        stage.parameters.connections,
      ),
      withoutToken: await polls(
        'without',
        numbers.map((number) => `${buyerOf(number)} -`),
        Math.min(READING_CONNECTIONS, stage.parameters.connections),
      ),
    };
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function tokensOf({ node, parameters }: Stage, numbers: readonly number[]): Promise<string[]> {
  const askers = await Askers.open(node.publicUrl, Math.min(64, parameters.connections));
  const path = `/v1/sales/${SALE}/place`;
  try {
    const answers = await Promise.all(
      numbers.map((number) => askers.ask({ method: 'GET', path, buyerId: buyerOf(number) })),
    );
    return answers.map(({ body }) => (JSON.parse(body) as { placeToken: string }).placeToken);
  } finally {
    askers.close();
  }
}

async function measureReturned(stage: Stage): Promise<Waiting['returned']> {
  const lay: number[] = [];
  for (let number = 1; number <= Math.min(20, stage.parameters.returns); number++) {
    await giveBack(stage, SALE, buyerOf(number));
    lay.push(await offeredTo(stage, SALE, number + 1));
    // Otherwise every return would meet the head just after a round.
    await delay(Math.random() * 500);
  }
  return { p50Ms: rounded(median(lay), 0), maxMs: rounded(Math.max(...lay), 0) };
}

/** Nobody of some thousand places asks any more when a unit comes back. */
async function measureAbsent(stage: Stage, places: number): Promise<number> {
  const { db } = stage;
  const absent = Math.min(Math.floor(places / 2 / 4_096), 5) * 4_096;
  const [held] = await rows<{ number: string }>(
    db,
    "SELECT number::text FROM places WHERE sale_id = ? AND state = 'offered'",
    [SALE],
  );
  if (absent === 0) return 0;
  await db.raw(
    "UPDATE queue_presence SET present = B'0'::bit(4096) WHERE sale_id = ? AND period >= 0 AND page < ?",
    [SALE, absent / 4_096],
  );
  await giveBack(stage, SALE, buyerOf(Number(held!.number)));
  const tookMs = await offeredTo(stage, SALE, absent + 1);
  return rounded(((absent - Number(held!.number)) * 1_000) / tookMs, 0);
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
