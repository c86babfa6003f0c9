/**
 * The two line formats of take.lua. Ids and keys hold visible ASCII without spaces (limits.ts), so that nothing
 * needs escaping. A buyer's record: "orderId:quantity:seq:key" words. A log entry's orders: lines of
 * "orderId buyerId quantity key".
 */
import type { ExpectedSale, HeldOrder, LogHint, TakeOrder } from '../contract.ts';
import { BackendCorrupt } from '../errors.ts';

/** A counter of a hash. A missing one never means zero. */
export function decodeCount(text: string | null | undefined): number {
  if (!text || !/^\d+$/.test(text)) throw new BackendCorrupt(`a counter is ${JSON.stringify(text)}`);
  return Number(text);
}

export function encodeRecord(orders: readonly HeldOrder[]): string {
  return orders.map((o) => `${o.orderId}:${o.quantity}:${o.seq}:${o.key}`).join(' ');
}

export function decodeRecord(record: string | null): HeldOrder[] {
  if (!record) return [];
  return record.split(' ').map((word) => {
    const parts = /^(\d+):(\d+):(\d+):(\S*)$/.exec(word);
    if (!parts) throw new BackendCorrupt(`a buyer's record holds ${JSON.stringify(word)}`);
    return { orderId: parts[1]!, quantity: Number(parts[2]), seq: Number(parts[3]), key: parts[4]! };
  });
}

/** The lines go into the log as they are. One string for all: an argument each for Redis costs both sides more. */
export function encodeOrders(orders: readonly TakeOrder[]): string {
  let lines = '';
  for (const { orderId, buyerId, quantity, key } of orders) {
    lines += `${lines === '' ? '' : '\n'}${orderId} ${buyerId} ${quantity} ${key}`;
  }
  return lines;
}

export function decodeOrders(lines: string): TakeOrder[] {
  return lines.split('\n').map((line) => {
    const parts = /^(\d{1,19}) (\S+) ([1-9]\d*) (\S*)$/.exec(line);
    if (!parts) throw new BackendCorrupt(`a log entry holds ${JSON.stringify(line.slice(0, 200))}`);
    return { orderId: parts[1]!, buyerId: parts[2]!, quantity: Number(parts[3]), key: parts[4]! };
  });
}

/** What portrait.lua makes of a sale that is as expected. */
export function encodePortrait({ generation, state, newest }: ExpectedSale): string {
  let lines = `${generation} ${state}`;
  for (const { seq, tail } of newest) lines += `\n${generation} ${state} ${seq} ${tail}`;
  return lines;
}

/** "saleId awaited segment…", where awaited is 1 or 0. */
export function encodeHint({ saleId, awaited, segments }: LogHint): string {
  return [saleId, awaited ? 1 : 0, ...segments].join(' ');
}

export function decodeHint(message: string): LogHint {
  const [saleId = '', awaited, ...segments] = message.split(' ');
  return { saleId, awaited: awaited === '1', segments: segments.map(Number) };
}

/** The field `withdrawal` of a segment: "movement units", or "movement back" when they were given back. */
export function decodeWithdrawal(text: string): { movement: string; units: number } {
  const [movement = '', units = 'back'] = text.split(' ');
  return { movement, units: units === 'back' ? 0 : decodeCount(units) };
}
