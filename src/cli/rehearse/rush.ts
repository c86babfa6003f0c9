/** The rush of a rehearsal: its sale, its crowd, what is watched meanwhile, and the comparison afterwards. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../config/config.ts';
import { findOpsToken } from '../../config/ops-token.ts';
import { newRehearsalId } from '../../engine/sale/rehearsal.ts';
import type { BuyerTokens } from '../command/buyer-token.ts';
import type { withOperations } from '../command/open-operations.ts';
import { opsUrlOf } from '../command/ops-connection.ts';
import { describe } from '../terminal/explain.ts';
import { invokedAs } from '../terminal/invoked-as.ts';
import { note, number, plural } from '../terminal/output.ts';
import { hasRoomFor } from '../terminal/sketch.ts';
import { sendCrowd } from './crowd/crowd.ts';
import type { Fault } from './crowd/fault.ts';
import type { Plan } from './crowd/plan.ts';
import type { CrowdProgress, CrowdResult } from './crowd/protocol.ts';
import { secondsOf, totalsOf } from './report/figures.ts';
import type { Rush } from './report/judge.ts';
import { compareBooks, storedOrders } from './stage/books.ts';
import type { OwnNode } from './stage/nodes.ts';
import { isPassing, openShadowSale, removeShadowSale } from './stage/shadow-sale.ts';
import type { Victim } from './stage/victims.ts';
import { Watch, type WatchedNode } from './stage/watch.ts';

const DRAIN_LIMIT_MS = 60_000;
const DRAIN_POLL_MS = 200;

export type Operations = Parameters<Parameters<typeof withOperations>[1]>[0];

export interface Scene {
  readonly config: Config;
  readonly plan: Plan;
  readonly token: BuyerTokens | undefined;
  readonly nodes: readonly OwnNode[];
  readonly victims: readonly Victim[];
  readonly signal: AbortSignal;
}

export interface Ended {
  readonly saleId: string;
  readonly rush: Rush;
  readonly isRemoved: boolean;
}

/** Creates the sale, sends the crowd, and removes the sale, whatever happens in between. */
export async function rushOn(operations: Operations, scene: Scene): Promise<Ended> {
  const { plan, signal } = scene;
  signal.throwIfAborted();
  const saleId = newRehearsalId();
  let rush: Rush;
  let isRemoved = true;
  try {
    await openShadowSale(operations.sales, saleId, plan);
    note(
      `The sale ${saleId} is open. If this process is killed, \`${invokedAs()} rehearse --clean\` removes it.`,
    );
    rush = await measure(operations, saleId, scene);
  } finally {
    note('Removing the sale …');
    // What was measured is reported all the same.
    await removeShadowSale(operations.sales, saleId).catch((error) => {
      isRemoved = false;
      note(`${describe(error)}. Run \`${invokedAs()} rehearse --clean\` to remove it.`);
    });
  }
  return { saleId, rush, isRemoved };
}

async function measure(
  operations: Operations,
  saleId: string,
  { config, plan, token, nodes, victims, signal }: Scene,
): Promise<Rush> {
  const own = [...nodes, ...victims.map(({ node }) => node)];
  // The metrics of one of the shop's nodes are of use only if the crowd goes there.
  const watched = [...(nodes.length > 0 ? [] : shopsNode(config)), ...own.map(watchedNode)];
  const watch = new Watch(watched, saleId, config.redisUrl);
  const end = new AbortController();
  let watching: Promise<void> | undefined;
  const served = nodes.length > 0 ? nodes.map(({ publicUrl }) => publicUrl) : plan.urls;
  const urls = [...served, ...victims.map(({ node }) => node.publicUrl)];
  const killed = victims.flatMap(({ kind, node }) => (kind === 'kill-node' ? [node.publicUrl] : []));
  let strikes: Promise<Fault | undefined>[] = [];
  const shown = showProgress(plan);
  try {
    const { arrivals, rate, seconds, buyers } = plan;
    const crowd = await sendCrowd(
      { urls, killed, saleId, crowding: { arrivals, rate, seconds }, buyers, ...(token && { token }) },
      signal,
      {
        started: (startAtMs) => {
          watching = watch.run(startAtMs, end.signal);
          strikes = victims.map((victim) => victim.strike(startAtMs, end.signal));
        },
        progress: shown.update,
      },
    );
    end.abort();
    await watching;
    shown.end();
    await watch.look();
    const faults = (await Promise.all(strikes)).filter((fault) => fault !== undefined);
    const rush = await settle(operations, saleId, crowd, watch, signal);
    return { ...rush, faults, failures: own.flatMap((node) => node.failure() ?? []) };
  } finally {
    shown.end();
    end.abort();
    await watching?.catch(() => {});
    await watch.close();
  }
}

const watchedNode = ({ publicUrl, opsUrl, opsToken }: OwnNode): WatchedNode => ({
  ...{ name: publicUrl, opsUrl, opsToken },
});

/** That of OPS_URL, if there is one. */
function shopsNode(config: Config): WatchedNode[] {
  const opsToken = findOpsToken(config);
  if (!config.opsUrl || opsToken === undefined) return [];
  const opsUrl = opsUrlOf(config);
  return [{ name: opsUrl, opsUrl, opsToken }];
}

/** Waits until every order that an answer named is in Postgres and the accounts agree, and compares. */
async function settle(
  operations: Operations,
  saleId: string,
  crowd: CrowdResult,
  watch: Watch,
  signal: AbortSignal,
): Promise<Omit<Rush, 'faults' | 'failures'>> {
  note('Waiting until every order is in Postgres …');
  const began = performance.now();
  const waited = () => performance.now() - began;
  /** The stores may be away for a moment: the crowd has asked much of them. */
  const patiently = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;) {
      signal.throwIfAborted();
      try {
        return await work();
      } catch (error) {
        if (!isPassing(error) || waited() > DRAIN_LIMIT_MS) throw error;
        await delay(DRAIN_POLL_MS);
      }
    }
  };
  const look = () => patiently(() => operations.sales.verify(saleId));
  const told = new Set(crowd.told.map(({ orderId }) => orderId)).size;
  let drainSeconds: number | undefined;
  let verify = await look();
  for (let before = -1; ; ) {
    if (verify.committedOrders >= told) drainSeconds ??= waited() / 1_000;
    const isSettled = drainSeconds !== undefined && verify.ok && verify.committedOrders === before;
    if (isSettled || waited() > DRAIN_LIMIT_MS) break;
    before = verify.committedOrders;
    await delay(DRAIN_POLL_MS);
    verify = await look();
  }
  const books = compareBooks(await patiently(() => storedOrders(operations.orders, saleId)), crowd);
  const { remaining } = await patiently(() => operations.sales.show(saleId));
  return {
    ...{ seconds: secondsOf(crowd, watch.looks), totals: totalsOf(crowd, watch.looks), looks: watch.looks },
    ...{ books, verify, buyersAsked: crowd.buyersAsked.length, remaining, drainSeconds },
  };
}

/** One line that changes on a terminal that can do that; elsewhere a line every few seconds. */
function showProgress({ rate, seconds, arrivals }: Plan): {
  update(progress: CrowdProgress): void;
  end(): void;
} {
  const LINE_EVERY_MS = 5_000;
  const isTerminal = hasRoomFor(1);
  let isOpen = true;
  let lastMs = Number.NEGATIVE_INFINITY;
  note(`The crowd comes: up to ${number(rate)} requests/s for ${plural(seconds, 'second')}, ${arrivals} …`);
  return {
    update({ sent, ended, orders }) {
      if (!isOpen) return;
      const text = `${number(sent)} sent, ${number(ended)} answered, ${number(orders)} orders`;
      if (isTerminal) process.stderr.write(`\r\u001b[K${text}`);
      else if (performance.now() - lastMs >= LINE_EVERY_MS) {
        lastMs = performance.now();
        note(text);
      }
    },
    end() {
      if (isOpen && isTerminal) process.stderr.write('\r\u001b[K');
      isOpen = false;
    },
  };
}
