/**
 * Sells a stock by a queue, as a shop does: it creates a sale at the ops port, and everybody in the crowd comes to the public
 * port. It ends when all is sold, or when nobody waits any more.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { OperatorClient, type VerifyReport } from '../../../client/index.ts';
import { rest } from '../../../lib/rest.ts';
import type { RunningNode } from '../../../node/node.ts';
import { signBuyerToken } from '../../command/buyer-token.ts';
import { note } from '../../terminal/output.ts';
import { sendQueueCrowd } from './crowd.ts';
import { judgeQueue, type QueueVerdict, queueVerdictText } from './judge.ts';
import type { DemoPage } from './page-server.ts';
import type { QueuePlan } from './plan.ts';
import { readStanding, type Standing } from './standing.ts';

const LOOK_MS = 250;
const TOKEN_S = 7_200;
/** A visitor who has closed the page, and was not heard of for this time, counts as absent. */
const PRESENCE_S = 30;
const SETTLE_MS = 100;
const SETTLE_LIMIT_MS = 30_000;

export interface QueueScene {
  readonly node: Pick<RunningNode, 'publicUrl' | 'opsUrl' | 'opsToken' | 'backendName' | 'databaseName'>;
  readonly page: Pick<DemoPage, 'show'>;
  /** The id that the sale gets. */
  readonly saleId: string;
  /** Signs the tokens of buyers. */
  readonly secret: string;
  readonly signal: AbortSignal;
  /** The page can be opened. @param commitment of the draw */
  invite(commitment: string): void;
  draw(standing: Standing): void;
}

/** What `--json` prints. Scripts rely on its fields, so they must not change. */
export interface QueueReport extends QueueVerdict {
  readonly scenario: 'queue';
  readonly saleId: string;
  readonly order: QueuePlan['order'];
  readonly stock: number;
  readonly segments: number;
  readonly buyers: number;
  readonly seed: number;
  /** Of the draw, from before the first place. */
  readonly commitment: string;
  readonly backend: string;
  readonly database: string;
  readonly report: VerifyReport;
}

/** @throws the signal's reason, and what went wrong */
export async function showQueue(plan: QueuePlan, scene: QueueScene): Promise<QueueReport> {
  const { node, saleId, signal, draw } = scene;
  signal.throwIfAborted();
  const operator = new OperatorClient({ url: node.opsUrl, token: node.opsToken, operator: 'demo' });
  const { order, stock, segments, buyers, seed } = plan;
  const opensAtMs = Date.now() + plan.opensInMs;
  const commitment = await createSale(operator, saleId, plan, opensAtMs);
  let standing: Standing | undefined;
  scene.page.show({ shopUrl: node.publicUrl, saleId, operator, standing: () => standing });
  scene.invite(commitment);

  const over = new AbortController();
  const crowd = sendQueueCrowd(plan, {
    ...{ url: node.publicUrl, saleId },
    headers: (nth) => ({
      authorization: `Bearer ${signBuyerToken({ secret: scene.secret }, `crowd-${nth + 1}`, TOKEN_S)}`,
    }),
    signal: AbortSignal.any([signal, over.signal]),
  });
  let hasEnded = false;
  const ended = crowd.ended.then(() => {
    hasEnded = true;
  });
  // It is awaited only at the end. Without a handler, a failure before that would end the process.
  ended.catch(() => {});
  const look = async () => {
    standing = await readStanding(operator, saleId, plan, crowd, opensAtMs);
    draw(standing);
    return standing;
  };
  try {
    let now = await look();
    while (now.bought < stock && !(hasEnded && now.offered + now.waiting + now.hopeless === 0)) {
      await Promise.race([rest(LOOK_MS, signal), hasEnded ? rest(LOOK_MS, signal) : ended]);
      signal.throwIfAborted();
      now = await look();
    }
    await Promise.all(crowd.seen.map(({ answering }) => answering));
    const report = await settledReport(operator, saleId, now.bought, signal);
    const verdict = judgeQueue(plan, crowd.seen, now, report);
    standing = { ...now, verdict: { holds: verdict.holds, text: queueVerdictText(verdict) } };
    // Nobody gives a unit back any more. Whoever still waits on the page is told that it is over.
    await operator.changeSale(saleId, { action: 'close' }).catch(() => {});
    return {
      ...{ scenario: 'queue', saleId, order, stock, segments, buyers, seed, commitment, ...verdict },
      ...{ backend: node.backendName, database: node.databaseName, report },
    };
  } catch (error) {
    // A wait that an interruption has cut short says only that it was cut short.
    signal.throwIfAborted();
    throw error;
  } finally {
    // Those who still wait stop listening.
    over.abort();
    await ended.catch(() => {});
  }
}

/** On the stores of a shop, the sale would sell on when the demo has ended. Says so if it can't be closed. */
export async function closeSale({ opsUrl, opsToken }: QueueScene['node'], saleId: string): Promise<void> {
  const operator = new OperatorClient({ url: opsUrl, token: opsToken, operator: 'demo' });
  const closed = await operator.changeSale(saleId, { action: 'close' }).catch(() => undefined);
  if (closed?.code === 'done') note(`The sale ${saleId} is closed. It stays in your stores.`);
  else if (closed?.code !== 'unknown_sale') note(`The sale ${saleId} could not be closed: close it.`);
}

/** @returns the commitment of its draw */
async function createSale(
  operator: OperatorClient,
  saleId: string,
  { order, stock, segments, offerSeconds, offersPerMinute }: QueuePlan,
  opensAtMs: number,
): Promise<string> {
  const created = await operator.createSale({
    ...{ id: saleId, title: 'An evening in the front row', stock, segments, perBuyerLimit: 1 },
    ...{ queue: order, offerSeconds, presenceSeconds: PRESENCE_S },
    startsAt: new Date(opensAtMs).toISOString(),
  });
  if (created.code !== 'done') throw new Error(`the sale was not created: ${created.code}`);
  const paced = await operator.changeQueue(saleId, { action: 'pace', perMinute: offersPerMinute });
  if (paced.code !== 'found') throw new Error(`the pace was not set: ${paced.code}`);
  return paced.queue.draw.commitment;
}

/** Waits until all units are accounted for, while returned ones are on their way. After the limit it returns the last report. */
async function settledReport(
  operator: OperatorClient,
  saleId: string,
  sold: number,
  signal: AbortSignal,
): Promise<VerifyReport> {
  const deadline = performance.now() + SETTLE_LIMIT_MS;
  for (;;) {
    const found = await operator.verify(saleId, false, { signal });
    if (found.code !== 'found') throw new Error(`the sale can't be verified: ${found.code}`);
    const isSettled = found.report.ok && found.report.committedOrders >= sold;
    if (isSettled || performance.now() >= deadline) return found.report;
    await delay(SETTLE_MS, undefined, { signal });
  }
}
