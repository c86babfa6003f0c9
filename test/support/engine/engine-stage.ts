/**
 * An engine on a scripted store, for tests of what it decides. Call `stageEngine` once in a test file. Then each test begins with an
 * engine that does not know the sale yet, and with frozen time.
 */
import { afterEach, beforeEach, vi } from 'vitest';
import { Board } from '../../../src/engine/board/board.ts';
import type { Directory, SaleListener, SaleView } from '../../../src/engine/board/directory.ts';
import type {
  Backend,
  BackendEvents,
  HeldOrder,
  Outcome,
  Purchase,
  Recall,
  Rejection,
  Sale,
  SaleState,
  SegmentRef,
} from '../../../src/engine/contract.ts';
import { Engine, type EngineOptions } from '../../../src/engine/purchase/engine.ts';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import { rulesOf } from '../../../src/engine/sale/rules.ts';
import { aSale } from '../shop/sales.ts';
import { freezeTime } from './frozen-time.ts';
import { aPurchase } from './purchases.ts';
import { ScriptedTakes } from './scripted-takes.ts';

export const SEGMENTS = 4;
export const LIMIT = 2;
export const LIVES_MS = 500;
export const SLOT = 0;
export const STARTS_AT = Date.UTC(2026, 0, 1);
export const ENDS_AT = Date.UTC(2027, 0, 1);

/** A purchase and its outcomes. */
export interface Bought {
  readonly purchase: Purchase;
  readonly told: Outcome[];
}

/** Tests replace them. */
interface Answers {
  /** What the directory finds. */
  view: SaleView;
  /** How the store reads buyers' records. */
  recall(buyerIds: readonly string[], saleId: string): Promise<Recall>;
}

export const answers = {} as Answers;
export let takes: ScriptedTakes;
export let board: Board;
export let events: BackendEvents[];
/** Whose records were read. */
export let recalls: (readonly string[])[];
export let directory: { [K in keyof Directory]: ReturnType<typeof vi.fn<Directory[K]>> };
export let listener: SaleListener;
export let faults: unknown[];
/** Orders that Postgres must be asked about. */
export let uncommitted: string[];
export let engine: Engine;

export function stageEngine(): void {
  beforeEach(async () => {
    freezeTime();
    takes = new ScriptedTakes();
    board = new Board(1);
    events = [];
    recalls = [];
    remember(0);
    answers.view = viewOf({});
    directory = {
      lookup: vi.fn(async (saleId) => {
        if (saleId === 'sale') listener.changed(answers.view);
      }),
      refresh: vi.fn(async () => listener.changed(answers.view)),
      listen: vi.fn((added) => {
        listener = added;
      }),
    };
    await start({ durable: true });
  });

  afterEach(() => void vi.useRealTimers());
}

/** Starts another engine. */
export async function start(
  { durable }: { durable: boolean },
  changes: Partial<EngineOptions> = {},
): Promise<void> {
  let nextId = 1001;
  faults = [];
  uncommitted = [];
  const backend = {
    durable,
    takes,
    sales: {
      recall: ({ saleId }: SegmentRef, buyerIds: readonly string[]) => {
        recalls.push(buyerIds);
        return answers.recall(buyerIds, saleId);
      },
    },
    subscribe: async (added: BackendEvents) => {
      events.push(added);
      return async () => {
        events.splice(events.indexOf(added), 1);
      };
    },
  } as unknown as Backend;
  engine = await Engine.start({
    backend,
    directory,
    board,
    worker: 7,
    nextOrderId: () => String(nextId++),
    requestDeadlineMs: LIVES_MS,
    laneCapacity: 100,
    onFault: (error) => faults.push(error),
    onUncommitted: (_, orders) => uncommitted.push(...orders.map(({ orderId }) => orderId)),
    ...changes,
  });
}

export function viewOf(spec: Partial<Sale>, state: SaleState = 'open', generation = 1): SaleView {
  const sale = aSale({
    id: 'sale',
    segments: SEGMENTS,
    perBuyerLimit: LIMIT,
    startsAt: STARTS_AT,
    endsAt: ENDS_AT,
    ...spec,
  });
  return { record: { sale, state, generation, epoch: 1, rules: rulesOf(sale) }, slot: SLOT };
}

/** Tells the worker of a change of the sale. */
export function learn(spec: Partial<Sale> = {}, state: SaleState = 'open', generation = 1): void {
  answers.view = viewOf(spec, state, generation);
  listener.changed(answers.view);
}

export function buy(spec: Partial<Purchase> = {}): Bought {
  const purchase = aPurchase(spec);
  const told: Outcome[] = [];
  engine.buy(purchase, (outcome) => told.push(outcome));
  return { purchase, told };
}

/** The directory looks the sale up. @returns ends that */
export function lookingUp(): () => void {
  let found = () => {};
  directory.lookup.mockReturnValue(
    new Promise<void>((resolve) => {
      found = resolve;
    }),
  );
  return () => found();
}

export const codes = (...bought: Bought[]) =>
  bought.map(({ told }) => told.map((outcome) => outcome.code).join(' then ') || 'waits');

interface Advance {
  readonly buyerId?: string;
  readonly generation?: number;
  readonly rejected?: readonly Rejection[];
  readonly tails?: readonly string[];
}

export function advance(
  seq: number,
  { buyerId = 'anna', generation = 1, rejected = [], tails }: Advance = {},
): void {
  const segment = homeSegment(buyerId, SEGMENTS);
  const watermark = { saleId: 'sale', segment, generation, seq, orders: seq, rejected };
  for (const { watermarks } of events) watermarks?.([tails ? { ...watermark, tails } : watermark]);
}

/** Two buyers with the same home segment, and one with another. */
export function neighbours(): [string, string, string] {
  const homes = Array.from({ length: 20 }, (_, i) => `buyer-${i}`);
  const [first] = homes;
  const isNear = (buyer: string) => homeSegment(buyer, SEGMENTS) === homeSegment(first!, SEGMENTS);
  return [first!, homes.slice(1).find(isNear)!, homes.find((buyer) => !isNear(buyer))!];
}

/** An order as the buyer's record has it. */
export function anOrder(spec: Partial<HeldOrder> = {}): HeldOrder {
  return { orderId: '900', quantity: 1, key: 'click', seq: 5, ...spec };
}

/** The store has these orders in every buyer's record. @param committed how far the segment's log is applied */
export function remember(committed: number, ...orders: HeldOrder[]): void {
  answers.recall = async (buyerIds) => ({
    committed,
    holdings: buyerIds.map((buyerId) => ({ buyerId, orders })),
  });
}
