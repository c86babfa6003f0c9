/** Plans which units to move between the segments of a sale, from what each has left. */
import type { Move, TakeOrder } from '../contract.ts';
import { splitEvenly } from './split-evenly.ts';

/** A segment with less than this part of an even share is poor: its buyers will soon wait for a refill. */
const POOR_SHARE = 0.5;

/** What the buyers of one segment request. */
export interface Want {
  /** The segment that needs units. */
  readonly receiver: number;
  /** Units of the smallest order. */
  readonly least: number;
  /** Units of all orders together. */
  readonly units: number;
}

export function wantOf(receiver: number, orders: readonly TakeOrder[]): Want {
  return {
    receiver,
    least: Math.min(...orders.map((order) => order.quantity)),
    units: orders.reduce((sum, order) => sum + order.quantity, 0),
  };
}

/**
 * Plans a refill as redis/lua/purchase/refill.lua does it. The richest donor gives half of its units, or what is missing if that
 * is more. While that is not enough, the next richest gives too. If the whole sale has fewer units than the smallest order,
 * nothing is moved.
 */
export function planRefill(lefts: readonly number[], { receiver, least, units }: Want): Move[] {
  if (sumOf(lefts) < least) return [];
  const donors = lefts.map((left, segment) => (segment === receiver ? 0 : left));
  const moves: Move[] = [];
  let missing = units - lefts[receiver]!;
  while (missing > 0) {
    const from = donors.indexOf(Math.max(...donors));
    const left = donors[from]!;
    if (left === 0) break;
    const moved = Math.min(left, Math.max(Math.ceil(left / 2), missing));
    moves.push({ from, to: receiver, units: moved });
    donors[from] = left - moved;
    missing -= moved;
  }
  return moves;
}

/**
 * Plans a rebalance: afterwards any two segments differ by one unit at most. Makes fewer moves than there are
 * segments, because the richest donor always gives to the poorest receiver.
 */
export function planMoves(lefts: readonly number[]): Move[] {
  const targets = splitEvenly(sumOf(lefts), lefts.length);
  // The richest segments keep the remainder, so that it need not move.
  const richestFirst = lefts.map((_, segment) => segment).sort((a, b) => lefts[b]! - lefts[a]!);
  const gaps = richestFirst.map((segment, rank) => ({ segment, units: lefts[segment]! - targets[rank]! }));
  const donors = [...gaps].sort((a, b) => b.units - a.units);
  const receivers = [...gaps].sort((a, b) => a.units - b.units);
  const moves: Move[] = [];
  let d = 0;
  for (const receiver of receivers) {
    while (receiver.units < 0) {
      const donor = donors[d]!;
      const units = Math.min(donor.units, -receiver.units);
      moves.push({ from: donor.segment, to: receiver.segment, units });
      donor.units -= units;
      receiver.units += units;
      if (donor.units === 0) d++;
    }
  }
  return moves;
}

/** Whether a segment is so poor compared to the others that its buyers will soon need a refill. */
export function isUneven(lefts: readonly number[]): boolean {
  const even = Math.floor(sumOf(lefts) / lefts.length);
  return lefts.some((left) => left < even * POOR_SHARE);
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
