/**
 * The line formats of take.lua. Ids and keys are visible ASCII without spaces (limits.ts), so nothing needs escaping.
 * A buyer's record: "orderId:quantity:seq:key" words. The orders of a log entry: lines of "orderId buyerId quantity
 * key". The notes of an entry: lines of "orderId note", where a note is JSON without line breaks.
 *
 * Decoders accept exactly what encoders can write. An order that Postgres can't store (a NUL, an id beyond 63 bits)
 * would block the whole batch that it is in, and so other sales.
 */
import type { ExpectedSale, HeldOrder, SegmentState, TakeOrder } from '../../contract.ts';
import { BackendCorrupt } from '../../errors.ts';
import { MAX_ID_CHARACTERS, MAX_PER_BUYER_LIMIT } from '../../limits.ts';
import { fitsOrderId, ORDER_ID_DIGITS } from '../../order-id.ts';
import { isNote } from '../../sale/order-note.ts';

/** Characters shown of invalid data, which may be of any length. */
const SHOWN_CHARACTERS = 200;

const WHOLE = '(0|[1-9]\\d{0,15})';
const QUANTITY = '([1-9]\\d{0,3})';
const KEY = `([\\x21-\\x7e]{0,${MAX_ID_CHARACTERS}})`;
const BUYER_ID = `([\\x21-\\x7e]{1,${MAX_ID_CHARACTERS}})`;
const RECORD_WORD = new RegExp(`^(${ORDER_ID_DIGITS}):${QUANTITY}:${WHOLE}:${KEY}$`);
const ORDER_LINE = new RegExp(`^(${ORDER_ID_DIGITS}) ${BUYER_ID} ${QUANTITY} ${KEY}$`);
const NOTE_LINE = new RegExp(`^(${ORDER_ID_DIGITS}) ([^\\n]+)$`);
const COUNT = new RegExp(`^${WHOLE}$`);
const WITHDRAWAL = new RegExp(`^${WHOLE} (?:${WHOLE}|back)$`);
const STATES = new Set<string | null | undefined>([
  'open',
  'paused',
  'closed',
  'loaded',
  'frozen',
  'lost',
] satisfies SegmentState[]);

/** @param what where it was found @throws BackendCorrupt */
export function corrupt(what: string, found: unknown): never {
  throw foundCorrupt(what, found);
}

export function foundCorrupt(what: string, found: unknown): BackendCorrupt {
  const shown = JSON.stringify(typeof found === 'string' ? found.slice(0, SHOWN_CHARACTERS) : found);
  return new BackendCorrupt(`${what} ${shown}`);
}

/** `undefined` if it is no JSON. */
export function parsedJson(text: string): unknown {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    // The caller reports what it has read.
  }
  return found;
}

/** Decodes a counter of a hash. A missing counter is an error, not zero. */
export function decodeCount(text: string | null | undefined): number {
  const count = text && COUNT.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(count) ? count : corrupt('a counter is', text);
}

export function isSegmentState(text: string | null | undefined): text is SegmentState {
  return STATES.has(text);
}

export function decodeState(text: string | null | undefined): SegmentState {
  return isSegmentState(text) ? text : corrupt('the state of a segment is', text);
}

export function encodeRecord(orders: readonly HeldOrder[]): string {
  return orders.map((o) => `${o.orderId}:${o.quantity}:${o.seq}:${o.key}`).join(' ');
}

export function decodeRecord(record: string | null): HeldOrder[] {
  if (!record) return [];
  return record.split(' ').map((word) => {
    const parts = RECORD_WORD.exec(word);
    const quantity = Number(parts?.[2]);
    if (!parts || !fitsOrderId(parts[1]!) || quantity > MAX_PER_BUYER_LIMIT)
      return corrupt("a buyer's record holds", word);
    return { orderId: parts[1]!, quantity, seq: decodeCount(parts[3]), key: parts[4]! };
  });
}

/**
 * The lines go into the log unchanged. One string for all orders: an argument for each would cost Redis and the
 * client more.
 */
export function encodeOrders(orders: readonly TakeOrder[]): string {
  let lines = '';
  for (const { orderId, buyerId, quantity, key } of orders) {
    lines += `${lines === '' ? '' : '\n'}${orderId} ${buyerId} ${quantity} ${key}`;
  }
  return lines;
}

/** The notes of a batch, one in a line behind its order's id; `''` if no order has one, which is usual. */
export function encodeNotes(orders: readonly TakeOrder[]): string {
  let lines = '';
  for (const { orderId, note } of orders) {
    if (note) lines += `${lines === '' ? '' : '\n'}${orderId} ${note}`;
  }
  return lines;
}

/** The orders of an entry with their notes. A note may be of an order of the batch that was not taken. */
export function withNotes(orders: readonly TakeOrder[], lines: string): TakeOrder[] {
  const notes = new Map<string, string>();
  for (const line of lines.split('\n')) {
    const parts = NOTE_LINE.exec(line);
    if (!parts || !isNote(parts[2]!)) return corrupt('a log entry holds the note', line);
    notes.set(parts[1]!, parts[2]!);
  }
  return orders.map((order) => {
    const note = notes.get(order.orderId);
    if (note === undefined) return order;
    // Without a spread: if it adds a member, it costs 16 times as much on Node 20.
    const { orderId, buyerId, quantity, key } = order;
    return { orderId, buyerId, quantity, key, note };
  });
}

export function decodeOrders(lines: string): TakeOrder[] {
  return lines.split('\n').map((line) => {
    const parts = ORDER_LINE.exec(line);
    const quantity = Number(parts?.[3]);
    if (!parts || !fitsOrderId(parts[1]!) || quantity > MAX_PER_BUYER_LIMIT)
      return corrupt('a log entry holds', line);
    return { orderId: parts[1]!, buyerId: parts[2]!, quantity, key: parts[4]! };
  });
}

/** The reply of digest.lua for a sale that is as expected. */
export function encodeDigest({ generation, state, rules, newest }: ExpectedSale): string {
  let lines = `${generation} ${state} ${rules}`;
  for (const { seq, tail } of newest) lines += `\n${generation} ${state} ${rules} ${seq} ${tail} ${seq}`;
  return lines;
}

/** The field `withdrawal` of a segment: "movement units", or "movement back" when they were given back; `''`: none yet. */
export function decodeWithdrawal(text: string): { movement: string; units: number } {
  if (text === '') return { movement: '', units: 0 };
  const [, movement, units = '0'] = WITHDRAWAL.exec(text) ?? corrupt('the field withdrawal is', text);
  return { movement: movement!, units: decodeCount(units) };
}
