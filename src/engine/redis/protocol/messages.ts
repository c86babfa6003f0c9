/**
 * The messages between nodes, sent through Redis channels. Any client of the Redis may write to these channels,
 * including nodes of other versions. An invalid message is a `BackendCorrupt`, which is reported and ignored:
 * messages may be lost anyway, and an exception would break the subscription.
 */
import type { RedisClient } from '../../../redis/clients.ts';
import type { LogHint, Rejection, SyncChannel, SyncNews, Watermark } from '../../contract.ts';
import type { BackendCorrupt } from '../../errors.ts';
import { MAX_HANDED_OVER, MAX_SEGMENTS, SALE_ID_PATTERN } from '../../limits.ts';
import { isOrderId } from '../../order-id.ts';
import { corrupt, foundCorrupt, parsedJson } from './codec.ts';
import type { Keys } from './keys.ts';

/** What may have these members. Of a value that is no object they are `undefined`. */
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
  const [saleId, awaited, ...words] = line.split(' ') as [string, ...string[]];
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
  const told = parsedJson(message);
  if (!Array.isArray(told)) corrupt('watermarks read', message);
  const known = told.filter(isWatermark);
  if (known.length < told.length) foreign(foundCorrupt('watermarks read', message));
  return known;
}

/** @throws BackendCorrupt */
export function decodeSaleId(message: string): string {
  return SALE_ID_PATTERN.test(message) ? message : corrupt('a sale’s change reads', message);
}

/** Every server of a cluster forwards the news to all subscribers. */
export function syncChannel(redis: RedisClient, { syncs }: Keys): SyncChannel {
  return { tell: (news) => void redis.publish(syncs, JSON.stringify(news)).catch(() => {}) };
}

/** @throws BackendCorrupt */
export function decodeSyncNews(message: string): SyncNews {
  const told = parsedJson(message);
  return isSyncNews(told) ? told : corrupt('news of a sync reads', message);
}

/** Unknown members are allowed: later versions may add some. */
function isSyncNews(told: unknown): told is SyncNews {
  const { from, sales, handedOver } = (told ?? {}) as Unread<SyncNews>;
  return isSyncName(from) && isCount(sales) && (handedOver === undefined || isHandOver(handedOver));
}

function isHandOver(told: unknown): boolean {
  const { to, saleIds } = (told ?? {}) as Unread<NonNullable<SyncNews['handedOver']>>;
  return (
    isSyncName(to) &&
    Array.isArray(saleIds) &&
    saleIds.length <= MAX_HANDED_OVER &&
    saleIds.every((id) => typeof id === 'string' && SALE_ID_PATTERN.test(id))
  );
}

function isSyncName(told: unknown): boolean {
  return typeof told === 'string' && /^[0-9a-f]{16}$/.test(told);
}

/** Unknown members are allowed: later versions may add some. */
function isWatermark(told: unknown): told is Watermark {
  const { saleId, segment, generation, seq, orders, rejected, tails } = (told ?? {}) as Unread<Watermark>;
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
  const { orderId, reason } = (told ?? {}) as Unread<Rejection>;
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
