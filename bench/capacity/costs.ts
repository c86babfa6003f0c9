/** Processor time of an operation, worked out from the measured points of measured.json. */
import { readFileSync } from 'node:fs';
import { occupied } from './batches.ts';
import { type Equation, fit } from './least-squares.ts';

export const PROGRAMS = ['node', 'redis', 'postgres'] as const;
export type Program = (typeof PROGRAMS)[number];

/** Microseconds of processor time. */
export interface Cost {
  /** A refusal that needs no store. */
  readonly refusal: number;
  /** Of a take: for each order (with its request and answer), and for each script call. */
  readonly takeOrder: number;
  readonly takeCall: number;
  /** Of a commit: for each order, for each log that is read, and for each transaction. */
  readonly commitOrder: number;
  readonly commitLog: number;
  readonly commitTransaction: number;
}

export type Costs = Readonly<Record<Program, Cost>>;

/** A phase of `bench:http`, median of its rounds. Processor time is in microseconds for each request. */
export interface Point {
  readonly use: 'fit' | 'check';
  readonly phase: 'accepted' | 'committed';
  readonly connections: number;
  readonly segments: number;
  readonly requestsPerSecond: number;
  /** Orders in a take and in a transaction, as measured. */
  readonly take: number;
  readonly transaction: number;
  /** The share of the orders that sync committed before the load ended. */
  readonly committed: number;
  readonly node: number;
  readonly redis: number;
  readonly postgres: number;
}

/** A load of `bench:latency`: so many purchases come in a second, however long the answers take. No cost was fitted to it. */
export interface OpenPoint {
  readonly perSecond: number;
  readonly connections: number;
  readonly segments: number;
  /** Orders in a take and in a transaction, as measured. */
  readonly take: number;
  readonly transaction: number;
  /** Microseconds of processor time for each purchase. */
  readonly node: number;
  readonly redis: number;
  readonly postgres: number;
}

/** The loads of one run of `bench:latency`. */
export interface OpenPoints {
  readonly date: string;
  readonly command: string;
  readonly loads: readonly OpenPoint[];
}

/** A figure of measured.json with its source. */
export interface Figure {
  readonly value: number;
  readonly unit: string;
  readonly from: string;
}

export interface Measured {
  readonly machine: string;
  readonly date: string;
  readonly command: string;
  readonly refusal: Readonly<Record<Program, number>>;
  readonly points: readonly Point[];
  readonly open: OpenPoints;
  readonly figures: Readonly<Record<FigureName, Figure>>;
}

export type FigureName =
  | 'requestBytes'
  | 'refusalBytes'
  | 'answerBytes'
  | 'redisOrderBytes'
  | 'redisCallBytes'
  | 'walBytes'
  | 'rowBytes'
  | 'buyerBytes'
  | 'logBytes'
  | 'workerBytes'
  | 'connectionBytes'
  | 'saleBytes'
  | 'syncOrder'
  | 'transactionLatency';

export function readMeasured(): Measured {
  return JSON.parse(readFileSync(new URL('./measured.json', import.meta.url), 'utf8')) as Measured;
}

/** The costs that explain the points with `use: 'fit'` best. The others only check them. */
export function costsOf({ points, refusal }: Measured): Costs {
  const fitted = points.filter(({ use }) => use === 'fit');
  const entries = PROGRAMS.map((program) => [program, costOf(fitted, program, refusal[program])]);
  return Object.fromEntries(entries) as Costs;
}

function costOf(points: readonly Point[], program: Program, refusal: number): Cost {
  const [takeOrder, takeCall, commitOrder, commitLog, commitTransaction] = fit(
    points.map((point): Equation => ({ factors: factorsOf(point), value: point[program] })),
  ) as [number, number, number, number, number];
  return { refusal, takeOrder, takeCall, commitOrder, commitLog, commitTransaction };
}

/** How much of each part of a cost one order pays. */
function factorsOf({ take, transaction, committed, segments }: Batches): number[] {
  const logs = occupied(transaction, segments);
  return [1, 1 / take, committed, (committed * logs) / transaction, committed / transaction];
}

type Batches = Pick<Point, 'take' | 'transaction' | 'committed' | 'segments'>;

/** Microseconds for an order that shares its calls as `batches` says. */
export function orderMicros(cost: Cost, batches: Batches): number {
  const parts = [cost.takeOrder, cost.takeCall, cost.commitOrder, cost.commitLog, cost.commitTransaction];
  return factorsOf(batches).reduce((sum, factor, i) => sum + factor * parts[i]!, 0);
}
