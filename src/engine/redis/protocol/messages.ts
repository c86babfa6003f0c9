/**
 * The messages between nodes, sent through Redis channels. Any client of the Redis may write to these channels,
 * including nodes of other versions. An invalid message is a `BackendCorrupt`, which is reported and ignored:
 * messages may be lost anyway, and an exception would break the subscription.
 */
import type { LogHint, Rejection, Watermark } from '../../contract.ts';
import type { BackendCorrupt } from '../../errors.ts';
import { MAX_SEGMENTS, SALE_ID_PATTERN } from '../../limits.ts';
import { isOrderId } from '../../order-id.ts';
import { corrupt, foundCorrupt } from './codec.ts';

type Unread<T> = { readonly [K in keyof T]?: unknown };

const REASONS = ['stock', 'limit', 'duplicate'] satisfies Rejection['reason'][] as unknown[];

/** A line for each hint: "saleId awaited segment…", where awaited is 1 or 0. */
export function encodeHints(hints: readonly LogHint[]): string {
  return hints
    .map(({ saleId, awaited, segments }) => [saleId, awaited ? 1 : 0, ...segments].join(' '))
    .join('\n');
}

/** @param foreign called for each line that this version can't read; the others still count */
export function decodeHints(message: string, foreign: (error: BackendCorrupt) => void): LogHint[] {
  const hints: LogHint[] = [];
  for (const line of message.split('\n')) {
    const hint = readHint(line);
    if (hint) hints.push(hint);
    else foreign(foundCorrupt('a hint reads', line));
  }
  return hints;
}

function readHint(line: string): LogHint | undefined {
  const [saleId = '', awaited, ...words] = line.split(' ');
  const segments = words.map((word) => (/^(0|[1-9]\d{0,3})$/.test(word) ? Number(word) : Number.NaN));
  const isHint =
    SALE_ID_PATTERN.test(saleId) &&
    (awaited === '0' || awaited === '1') &&
    segments.length <= MAX_SEGMENTS &&
    segments.every(isSegment);
  return isHint ? { saleId, awaited: awaited === '1', segments } : undefined;
}

/**
 * Decodes the watermarks that this version understands. One message has those of many sales. If a later version has
 * sent some that this version can't read, the others still count.
 * @param foreign called once if there were others
 * @throws BackendCorrupt if the message is no list
 */
export function decodeWatermarks(message: string, foreign: (error: BackendCorrupt) => void): Watermark[] {
  let told: unknown;
  try {
    told = JSON.parse(message);
  } catch {
    // Reported below.
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

/** Unknown members are allowed: later versions may add some. */
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
