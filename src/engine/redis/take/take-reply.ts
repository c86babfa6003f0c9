/** What the replies of take.lua mean. */
import type { TakeReply, TakeResult } from '../../contract.ts';
import { BackendCorrupt } from '../../errors.ts';
import { type RawTakeReply, STALE } from '../protocol/scripts.ts';

/** The reply to a take that came too late: this and the server's time. */
const LATE = 'late ';

const TAKEN: TakeResult = { kind: 'taken' };
const SHORT: TakeResult = { kind: 'short' };

/** @param orders how many were sent @throws BackendCorrupt */
export function decodeTake(reply: RawTakeReply, orders: number): TakeReply {
  if (typeof reply === 'string') return { status: decodeStatus(reply) };
  const [seq, committed, left, ordersSoFar, returned, ...codes] = reply;
  if (codes.length > 0 && codes.length !== orders)
    throw new BackendCorrupt(`${orders} orders got ${codes.length} answers`);
  const results = new Array<TakeResult>(orders).fill(TAKEN);
  for (const [i, code] of codes.entries()) {
    if (code !== 1) results[i] = code === 0 ? SHORT : decodeSettled(String(code));
  }
  return { status: 'served', results, seq, committed, left, orders: ordersSoFar, returned };
}

/** @returns the server's time that this reply tells, in milliseconds since 1970; `undefined`: none */
export function toldTime(reply: RawTakeReply): number | undefined {
  return typeof reply === 'string' && reply.startsWith(LATE) ? Number(reply.slice(LATE.length)) : undefined;
}

function decodeStatus(status: string): Exclude<TakeReply['status'], 'served'> {
  if (status.startsWith(LATE)) return 'late';
  switch (status) {
    case 'paused':
    case 'closed':
    case 'busy':
    case 'superseded':
    case 'outdated':
    case STALE:
      return status;
    case 'loaded':
    case 'frozen':
    case 'lost':
      return 'stale';
    default:
      throw new BackendCorrupt(`a segment has the state ${JSON.stringify(status)}`);
  }
}

function decodeSettled(words: string): TakeResult {
  const [kind, ...rest] = words.split(' ');
  switch (kind) {
    case 'replay':
      return { kind, orderId: rest[0]!, quantity: Number(rest[1]), seq: Number(rest[2]) };
    case 'mismatch':
      return { kind, orderId: rest[0]!, quantity: Number(rest[1]) };
    case 'limit':
      return { kind, orderIds: rest.filter(Boolean) };
    default:
      throw new BackendCorrupt(`a take was answered ${JSON.stringify(words)}`);
  }
}
