/** One seed, from empty stores to the finale. */
import { BackendCorrupt } from '../../src/engine/errors.ts';
import { BY } from '../support/author.ts';
import { Auditor, Violation } from './audit/auditor.ts';
import { finales } from './ending/finale.ts';
import { Disturbances } from './faults/disturbances.ts';
import { Storm } from './faults/storm.ts';
import { network } from './machines/network.ts';
import { SimNode } from './machines/sim-node.ts';
import { time, WORLD } from './machines/virtual-time.ts';
import { runToEnd, type World } from './machines/world.ts';
import { type Conditions, scenarioIn } from './plan/conditions.ts';
import { saleToCreate, scenarioOfOther } from './plan/other-sales.ts';
import { type Scenario, scenarioOf } from './plan/scenario.ts';
import { SaleRun } from './sale-run.ts';

export interface SeedPlan {
  readonly seed: number;
  /** Absent: what the seed draws. */
  readonly conditions?: Conditions | undefined;
}

export interface SeedReport {
  readonly seed: number;
  readonly violation: string | undefined;
  readonly events: number;
  /** A hash of everything that went over the network, and when. Two runs of a seed have the same. */
  readonly hash: string;
  readonly scenario: Scenario;
}

const START_MS = 20_000;
/** A client hears within this time that its connection is broken, when the network is not slow. */
const HEARD_MS = 5;
/** Further syncs start within this time, when the others have the sales. */
const SYNCS_COME_MS = 1_000;

export async function runSeed(
  world: World,
  { seed, conditions }: SeedPlan,
  trace?: (line: string) => void,
): Promise<SeedReport> {
  time.begin(seed);
  const scenario = conditions ? scenarioIn(conditions, time.random) : scenarioOf(seed, time.random);
  world.begin(scenario.redisServers);
  const auditor = new Auditor(world);
  let events = 0;
  let hash = 0;
  const mix = (value: number) => {
    hash = Math.imul(hash ^ value, 0x01000193) >>> 0;
  };
  network.note = (way, link, data) => {
    mix(Math.floor(time.now * 1e3));
    mix(link.number);
    // Packets of Postgres contain transaction ids, which grow from run to run, and get longer.
    if (link.server.name !== 'postgres') mix(data.length);
    trace?.(`${at()} ${link.client.name} ${way} ${link.server.name} ${printable(data)}`);
  };
  const at = () => time.now.toFixed(3).padStart(10);
  if (trace) auditor.trace = (line) => trace(`${at()} ${line}`);
  trace?.(JSON.stringify(scenario));

  const step = async (until: number): Promise<boolean> => {
    const went = await time.step(until);
    events++;
    if (!auditor.violation) auditor.check();
    if (auditor.violation) throw auditor.violation;
    return went;
  };
  const pass = async (ms: number) => {
    for (const until = time.now + ms; await step(until); );
  };
  unhandled = (error) =>
    auditor.note(`unhandled: ${error instanceof Error ? (error.stack ?? error) : String(error)}`);
  let violation: string | undefined;
  try {
    await play(world, scenario, auditor, pass);
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    violation = error.message;
  }
  return { seed, violation, events, hash: hash.toString(16).padStart(8, '0'), scenario };
}

async function play(
  world: World,
  scenario: Scenario,
  auditor: Auditor,
  pass: (ms: number) => Promise<void>,
): Promise<void> {
  let workers = 0;
  const watch = {
    sync: (node: string) => auditor.sync(node),
    head: (node: string) => auditor.head(node),
    fault: (node: string, what: string, error: unknown) => {
      // The way in which an engine reports an order that Redis has lost.
      if (auditor.everLost && error instanceof BackendCorrupt) return;
      auditor.fail(`${node}: ${what}: ${error instanceof Error ? error.stack : error}`);
    },
    nextWorker: () => ++workers,
  };
  const nodes = Array.from(
    { length: scenario.nodes },
    (_, i) => new SimNode(`node${i}`, world, scenario.node, watch),
  );
  const syncs = Array.from(
    { length: scenario.syncs },
    (_, i) => new SimNode(`sync${i}`, world, { ...scenario.node, workers: 0 }, watch),
  );
  const all = [...nodes, ...syncs];
  for (const node of nodes) node.start();
  while (!nodes.every(({ running }) => running)) {
    if (time.now > START_MS) auditor.fail('the nodes do not start');
    await pass(1);
  }
  const isQuiet = (buyerId: string): boolean => sales.every(({ crowd }) => crowd.isQuiet(buyerId));
  const parts = { world, nodes, auditor, isQuiet };
  const others = scenario.others.map((other) => scenarioOfOther(scenario, other));
  const sales: readonly SaleRun[] = [scenario, ...others].map(
    (own, i) => new SaleRun(i === 0 ? 's' : `s${i + 1}`, own, parts),
  );
  for (const { auditor, scenario } of sales) {
    const sale = saleToCreate(auditor.saleId, scenario);
    await runToEnd(() => nodes[0]!.running!.service.create(sale, BY.actor), nodes[0]!.machine);
  }
  const storm = new Storm(scenario, world, all, auditor);
  const disturbances = new Disturbances(scenario, world, all, auditor);
  for (const sale of sales) sale.begin();
  for (const sync of syncs) time.after(time.random.unit() * SYNCS_COME_MS, () => sync.start(), WORLD);
  storm.begin();
  disturbances.begin();
  await pass(scenario.lastsMs);
  disturbances.end();
  storm.end();
  // Until then, a purchase may be sent on a connection that is broken already, and nobody can say what became of it.
  await pass(scenario.weather.slowMs + HEARD_MS);
  await finales(sales.map((sale) => ({ ...sale, world, nodes, all, pass })));
}

let unhandled: (error: unknown) => void = () => {};

/** Records unhandled errors, which would end a node's process. */
export function watchUnhandled(): void {
  const told = (error: unknown) => {
    if (error instanceof Violation) return;
    if (time.here === WORLD) throw error;
    unhandled(error);
  };
  // Handlers of a copy that ran before use that copy's clock.
  process.removeAllListeners('unhandledRejection');
  process.removeAllListeners('uncaughtException');
  time.failed = told;
  process.on('unhandledRejection', told);
  process.on('uncaughtException', told);
}

const SHOWN_CHARACTERS = 160;

function printable(data: Buffer): string {
  const text = data.toString('latin1').replace(/--\[\[.*?\$\d/gs, '…');
  return text.replace(/[^\x20-\x7e]+/g, ' ').slice(0, SHOWN_CHARACTERS);
}
