/**
 * A lane on a scripted store, for tests of what becomes of its purchases. Call `stageLane` once in a test file. Then each test begins
 * with an empty lane, and with frozen time.
 */
import pLimit from 'p-limit';
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { Board } from '../../../src/engine/board/board.ts';
import type { Outcome, Purchase, Rejection, SaleRecord } from '../../../src/engine/contract.ts';
import { QUEUE_SHARE } from '../../../src/engine/limits.ts';
import type { EngineEvents } from '../../../src/engine/purchase/events.ts';
import { Lane, type LaneParts, type LaneSale } from '../../../src/engine/purchase/lane.ts';
import type { LogHints } from '../../../src/engine/purchase/log-hints.ts';
import type { LivePurchase } from '../../../src/engine/purchase/purchase.ts';
import type { HandedBack } from '../../../src/engine/purchase/settle.ts';
import { PurchasesUnderWay } from '../../../src/engine/purchase/under-way.ts';
import { TickScheduler } from '../../../src/lib/tick-scheduler.ts';
import { aSale } from '../shop/sales.ts';
import { elapse, freezeTime } from './frozen-time.ts';
import { aPurchase, codesOf } from './purchases.ts';
import { ScriptedTakes } from './scripted-takes.ts';

export const SEGMENT = 2;
export const SEGMENTS = 4;
export const LIMIT = 3;
export const CAPACITY = 1_000;
export const LIVES_MS = 500;
const MAX_QUEUE_MS = LIVES_MS * QUEUE_SHARE;
/** After a lost reply, the lane sends the batch again within this time. */
export const SENT_AGAIN_MS = 50;
export const ENDS_AT = Date.UTC(2027, 0, 1);

export let takes: ScriptedTakes;
export let board: Board;
export let underWay: PurchasesUnderWay;
/** Purchases with a shorter deadline. */
export let shortLived: PurchasesUnderWay;
export let sale: { record: SaleRecord; slot: number; isGone: boolean; refills: LaneSale['refills'] };
export let lane: Lane;
export let faults: unknown[];
/** Tests replace some of them. */
export let parts: { -readonly [K in keyof LaneParts]: LaneParts[K] };
export let events: { -readonly [K in keyof EngineEvents]: EngineEvents[K] };
export let grew: ReturnType<typeof vi.fn<LogHints['grew']>>;
/** What the lanes have handed back; after a stale segment, with the rest of the queue. */
export let handedBack: HandedBack[];
/** The purchases that must be checked. */
export let checking: LivePurchase[];

export function stageLane(): void {
  beforeEach(() => {
    freezeTime();
    takes = new ScriptedTakes();
    board = new Board(1);
    faults = [];
    open({ durable: true });
  });

  afterEach(() => {
    vi.useRealTimers();
    for (const [, orders] of vi.mocked(events.onUncommitted!).mock.calls) expect(orders).not.toEqual([]);
  });
}

/** Makes another lane. */
export function open({ durable }: { durable: boolean }): void {
  let nextId = 1001;
  const definition = aSale({ id: 'sale', segments: SEGMENTS, perBuyerLimit: LIMIT, endsAt: ENDS_AT });
  sale = {
    record: { sale: definition, state: 'open', generation: 1, epoch: 1 },
    slot: 0,
    isGone: false,
    refills: pLimit(1),
  };
  handedBack = [];
  checking = [];
  grew = vi.fn();
  events = {
    onBatch: vi.fn(),
    onRefill: vi.fn(),
    onUncommitted: vi.fn(),
    onFault: (error) => faults.push(error),
  };
  underWay = new PurchasesUnderWay(LIVES_MS, durable, events);
  shortLived = new PurchasesUnderWay(100, durable, events);
  parts = {
    ...{ takes, board, durable, events, ticks: new TickScheduler() },
    worker: 7,
    laneCapacity: CAPACITY,
    maxQueueMs: MAX_QUEUE_MS,
    nextOrderId: () => String(nextId++),
    hints: { grew } as unknown as LogHints,
  };
  lane = new Lane(parts, sale, SEGMENT);
}

/** Runs a lane as its sale does. */
export async function run(at: Lane): Promise<void> {
  for (let some = await at.run(); some.length > 0; some = await at.run()) {
    for (const one of some) {
      if (one.why === 'stale') handedBack.push({ ...one, purchases: [...one.purchases, ...at.drain()] });
      else if (one.why === 'checking') checking.push(...one.purchases);
      else handedBack.push(one);
    }
  }
}

function go(at: Lane): void {
  if (at.isWaiting) void run(at);
}

export type Bought = LivePurchase & { readonly told: Outcome[] };

export function buy(buyerId: string, spec: Partial<Purchase> = {}, at = lane, among = underWay): Bought {
  const told: Outcome[] = [];
  const purchase = among.begin(aPurchase({ buyerId, ...spec }), (outcome) => told.push(outcome));
  at.push(purchase);
  go(at);
  return Object.assign(purchase, { told });
}

export function readmit(purchase: LivePurchase): void {
  lane.readmit(purchase);
  go(lane);
}

export function check(): void {
  lane.check();
  go(lane);
}

export const buyers = (count: number) => Array.from({ length: count }, (_, i) => `buyer-${i}`);

export function advance(seq: number, { generation = 1, rejected = [] as Rejection[] } = {}): void {
  checking.push(
    ...lane.advance({ saleId: 'sale', segment: SEGMENT, generation, seq, orders: seq, rejected }),
  );
}

/** The sale is in another generation, and the lane's worker knows: the lane is retired. */
export function learnGeneration(generation: number): void {
  sale.record = { ...sale.record, generation };
}

/** A purchase whose first attempt got no reply, and its second attempt. */
export async function unconfirmed(spec: Partial<Purchase> = {}) {
  const anna = buy('anna', spec);
  const first = await takes.next();
  await first.loseReply();
  await elapse(SENT_AGAIN_MS);
  const again = await takes.next();
  expect(codesOf([anna])).toEqual(['waits']);
  return { anna, first, again };
}
