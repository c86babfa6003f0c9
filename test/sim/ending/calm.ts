/** The time after the last fault: what is asked for then is done, and everything comes to rest. */
import type { Purchase } from '../../../src/engine/contract.ts';
import { isPublished, readBooks } from '../audit/books.ts';
import type { SaleAuditor } from '../audit/sale-auditor.ts';
import type { SimNode } from '../machines/sim-node.ts';
import { time, WORLD } from '../machines/virtual-time.ts';
import { runToEnd, type World } from '../machines/world.ts';
import { type Crowd, onceOnly } from '../people/crowd.ts';
import type { Lives } from '../people/lives.ts';
import type { Operators } from '../people/operators.ts';
import type { Payers } from '../people/payers.ts';
import type { Scenario } from '../plan/scenario.ts';
import type { People } from '../queue/people.ts';

/** Everything that was begun ends within this time: reconnections, retries, sweeps, rebuilds. */
export const SETTLE_MS = 20_000;
export const LOOK_EVERY_MS = 40;
/** Of the time that something has lasted, so that what never ends is not asked for hundreds of times. */
const LATER_LOOKS = 0.1;
/** How long a buyer may have to ask again after a rebuild or a pause. */
const ASK_AGAIN_MS = 20_000;
/** How long, and how many times, the only buyer may be told that others are in the way. */
const BUSY_MS = 2_000;
const MAX_BUSY = 4;
/** Sync may rebuild a sale once or twice after the last fault, for what it finds only now. */
const MAX_REBUILDS = 20;
/**
 * A node that misses the message that a sale was made again remembers for a second that there is no such sale; with some slack.
 */
const MISSED_MS = 1_100;
/** For two seconds: the session of a connection that hangs may hold a lock meanwhile. */
export const MAX_ASKED = 50;

export interface FinaleParts {
  readonly scenario: Scenario;
  readonly world: World;
  /** Those that buyers use. */
  readonly nodes: readonly SimNode[];
  /** All that have a sync. */
  readonly all: readonly SimNode[];
  readonly auditor: SaleAuditor;
  readonly crowd: Crowd;
  readonly payers: Payers;
  readonly operators: Operators;
  readonly lives: Lives;
  readonly people: People | undefined;
  /** Runs the simulation for this long, with the auditor checking. */
  readonly pass: (ms: number) => Promise<void>;
}

export async function settle(
  { world, all, auditor, crowd, pass }: FinaleParts,
  what: string,
  also: () => boolean = () => true,
): Promise<void> {
  const why = () => unsettled(world, all, auditor) ?? (also() ? undefined : what);
  const rebuilds = rebuildsOf(auditor);
  for (const end = time.now + SETTLE_MS; why() || crowd.requests.some(({ code }) => code === undefined); ) {
    if (time.now > end)
      auditor.fail(`P2: ${what}: not within ${SETTLE_MS} ms, because ${why() ?? 'a buyer waits'}`);
    if (rebuilds() > MAX_REBUILDS)
      auditor.fail(`P2: ${what}: not within ${rebuilds()} rebuilds, because ${why() ?? 'a buyer waits'}`);
    await pass(LOOK_EVERY_MS);
  }
}

/** @returns a counter of the rebuilds from now on */
function rebuildsOf(auditor: SaleAuditor): () => number {
  const generation = () => auditor.truth?.generation ?? 0;
  const before = generation();
  return () => generation() - before;
}

/** @returns why the stores are not at rest yet; `undefined` if they are */
function unsettled(world: World, all: readonly SimNode[], auditor: SaleAuditor): string | undefined {
  const { truth } = auditor;
  if (!truth || world.postgres.isInTransaction) return 'a transaction is open';
  const down = all.find(({ running }) => !running);
  if (down) return `${down.name} has not started`;
  const books = readBooks(world, auditor.saleId, truth.segments);
  if (books.generation !== truth.generation || books.state !== truth.state)
    return `Redis has generation ${books.generation}, ${books.state}; Postgres ${truth.generation}, ${truth.state}`;
  const wrong = books.segments.findIndex((segment) => !isPublished(segment, truth.generation));
  if (wrong >= 0) return `segment ${wrong} is ${JSON.stringify(books.segments[wrong])}`;
  const behind = truth.cursors.findIndex((cursor, i) => cursor.units !== books.segments[i]?.taken);
  if (behind >= 0) return `the log of segment ${behind} is not drained`;
  if (truth.pendingReturns > 0) return `${truth.pendingReturns} returns are pending`;
  if (truth.erasures.some(({ isDue }) => isDue)) return 'an erasure is due';
  if (truth.openMovements > 0) return `${truth.openMovements} changes are open`;
  return undefined;
}

/**
 * Answers that are allowed for a while in calm weather, for example from a node that does not know yet that the sale
 * was rebuilt or resumed.
 */
const NOT_FINAL = new Set(['unavailable', 'busy', 'gone', 'paused', 'token_required']);

/** Repeats a purchase until its answer is final. */
export async function insist({ crowd, auditor, pass }: FinaleParts, purchase: Purchase): Promise<string> {
  let busy = 0;
  for (const begun = time.now; ; ) {
    const mayHaveMissed = time.now < begun + MISSED_MS && auditor.truth !== undefined;
    const asked = onceOnly({ ...purchase, awaitCommit: true });
    time.after(0, () => crowd.ask(asked), WORLD);
    while (asked.code === undefined) await pass(1);
    const { code } = asked;
    if (!NOT_FINAL.has(code) && !(mayHaveMissed && code === 'unknown_sale')) return code;
    if (code === 'busy') busy++;
    if (time.now > begun + (busy > MAX_BUSY ? BUSY_MS : ASK_AGAIN_MS))
      auditor.fail(`P2: ${purchase.buyerId} is answered ${code} in calm weather`);
    await pass(nextLookMs(begun));
  }
}

/** @returns how long to wait before the next look at what has lasted since then */
export function nextLookMs(begun: number): number {
  return Math.max(LOOK_EVERY_MS, LATER_LOOKS * (time.now - begun));
}

/** P7 */
export async function verify(parts: FinaleParts): Promise<void> {
  const report = await ask(parts, ({ service }) => service.verify(parts.auditor.saleId));
  if (!report.ok) parts.auditor.fail(`P7: verify says ${report.findings.join('; ')}`);
}

/** Retries, because a connection that broke in the storm may be noticed only now, and an erasure may rebuild the sale. */
export async function ask<T>(
  { nodes, auditor, pass }: FinaleParts,
  work: (running: NonNullable<SimNode['running']>) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const node = nodes.find(({ running }) => running)!;
    try {
      return await runToEnd(
        () => work(node.running!),
        node.machine,
        () => auditor.check(),
      );
    } catch (error) {
      if (attempt === MAX_ASKED) auditor.fail(`P7: asked ${attempt} times in calm weather: ${error}`);
      await pass(LOOK_EVERY_MS);
    }
  }
}
