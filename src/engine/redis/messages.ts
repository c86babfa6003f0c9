/**
 * What nodes tell each other through Redis. Anybody who can reach it may write into these channels, a node of another
 * version too: what is none of ours is a `BackendCorrupt`, to be reported and passed over, since messages may be lost
 * anyway. What an exception would do to the connection that hears them is no message's business.
 */
import type { LogHint, Rejection, Watermark } from '../contract.ts';
import type { BackendCorrupt } from '../errors.ts';
import { MAX_SEGMENTS, SALE_ID_PATTERN } from '../limits.ts';
import { isOrderId } from '../order-id.ts';
import { corrupt, foundCorrupt } from './codec.ts';

type Unread<T> = { readonly [K in keyof T]?: unknown };

const REASONS = ['stock', 'limit', 'duplicate'] satisfies Rejection['reason'][] as unknown[];

/** "saleId awaited segment…", where awaited is 1 or 0. */
export function encodeHint({ saleId, awaited, segments }: LogHint): string {
  return [saleId, awaited ? 1 : 0, ...segments].join(' ');
}

/** @throws BackendCorrupt */
export function decodeHint(message: string): LogHint {
  const [saleId = '', awaited, ...words] = message.split(' ');
  const segments = words.map((word) => (/^(0|[1-9]\d{0,3})$/.test(word) ? Number(word) : Number.NaN));
  const isHint =
    SALE_ID_PATTERN.test(saleId) &&
    (awaited === '0' || awaited === '1') &&
    segments.length <= MAX_SEGMENTS &&
    segments.every(isSegment);
  return isHint ? { saleId, awaited: awaited === '1', segments } : corrupt('a hint reads', message);
}

/**
 * Those that this version understands: a sync of a later one tells of many sales in one message, and what is new in one of
 * them must not hide the others.
 * @param foreign told once if there were others
 * @throws BackendCorrupt if it is no list
 */
export function decodeWatermarks(message: string, foreign: (error: BackendCorrupt) => void): Watermark[] {
  let told: unknown;
  try {
    told = JSON.parse(message);
  } catch {
    // Shown below.
  }
  if (!Array.isArray(told)) corrupt('watermarks read', message);
  const known = told.filter(isWatermark);
  if (known.length < told.length) foreign(foundCorrupt('watermarks read', message));
  return known;
}

/** @throws BackendCorrupt */
export function decodeSaleId(message: string): string {
  return SALE_ID_PATTERN.test(message) ? message : corrupt('a sale’s change reads', message);
}

/** Members that this version does not know are left to those who do. */
function isWatermark(told: unknown): told is Watermark {
  if (typeof told !== 'object' || told === null) return false;
  const { saleId, segment, generation, seq, orders, rejected, tails } = told as Unread<Watermark>;
  return (
    typeof saleId === 'string' &&
    SALE_ID_PATTERN.test(saleId) &&
    isSegment(segment) &&
    isCount(generation) &&
    isCount(seq) &&
    isCount(orders) &&
    Array.isArray(rejected) &&
    rejected.every(isRejection) &&
    (tails === undefined || (Array.isArray(tails) && tails.every(isName)))
  );
}

function isRejection(told: unknown): told is Rejection {
  if (typeof told !== 'object' || told === null) return false;
  const { orderId, reason } = told as Unread<Rejection>;
  return isName(orderId) && REASONS.includes(reason);
}

function isName(told: unknown): boolean {
  return typeof told === 'string' && isOrderId(told);
}

function isSegment(told: unknown): boolean {
  return isCount(told) && (told as number) < MAX_SEGMENTS;
}

function isCount(told: unknown): boolean {
  return Number.isSafeInteger(told) && (told as number) >= 0;
}
