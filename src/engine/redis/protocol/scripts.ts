/** One typed function per script. No other code calls a script, and callers never build argument arrays. */

import { ReplyError } from 'ioredis';
import { fenced, fenceKey } from '../../../locks/fenced.ts';
import { DEMOTED, type RedisClient } from '../../../redis/clients.ts';
import { replyReason } from '../../../redis/reply-reason.ts';
import type {
  EventPart,
  GenerationRef,
  HoldingsPart,
  Removable,
  SaleState,
  TakeBatch,
} from '../../contract.ts';
import { BackendCorrupt, NotExecuted, StaleGeneration } from '../../errors.ts';
import { AFTER_ALL_IDS, DRAFT_KEPT_MS, TOMBSTONE_KEPT_MS } from '../../limits.ts';
import { NO_RULES } from '../../sale/rules.ts';
import type { Want } from '../../sale/transfer-plan.ts';
import { encodeNotes, encodeOrders } from './codec.ts';
import type { SegmentKeys } from './keys.ts';
import { luaSource } from './lua-source.ts';
import { defineCommands, type ScriptCommands } from './script-commands.ts';

export const STALE = 'stale';
/** If a script for several segments fails for one of them, its reply for that one begins with this, and the message follows. */
const ERROR = 'error ';

/** @throws StaleGeneration if the script answered 'stale' */
export function refuseStale<Reply>(
  reply: Reply,
  { saleId, generation }: GenerationRef,
): asserts reply is Exclude<Reply, string> {
  if (reply === STALE) throw new StaleGeneration(saleId, generation);
}

/** Scripts over all segments of a sale have as many keys as the sale has segments. They are called rarely. */
const REFILL_AND_TAKE = luaSource('purchase/refill-and-take');
const FENCED_REFILL_AND_TAKE = fenced(REFILL_AND_TAKE);
const SET_STATE = luaSource('change/set-state');
const SNAPSHOT = luaSource('look/snapshot');
const AUDIT = luaSource('look/audit');

/** As XRANGE replies it. */
export type RawEntry = [id: string, fields: string[]];
/** What a segment says of its log (`HEAD_FIELDS`), and entries of the log; or the error of this log alone. */
export type RawRead =
  | readonly [error: null, head: readonly (string | null)[], entries: readonly RawEntry[]]
  | readonly [error: BackendCorrupt];

export type RawTakeReply =
  | string
  | [
      seq: number,
      committed: number,
      left: number,
      orders: number,
      returned: number,
      ...results: (number | string)[],
    ];
/** A segment's fields; `null` if it is missing; the error if its key is not a hash. */
export type RawAudit = (string | null)[] | string | null;
export type RawRefillReply = string | [[total: number, moved: number, epoch: number], RawTakeReply];

/** The reply of snapshot.lua for one segment; the record of an open transfer is the last value. */
export type RawSnapshot = string[] | null;

export class Scripts {
  readonly #redis: RedisClient;
  readonly #commands: ScriptCommands;

  constructor(redis: RedisClient) {
    this.#redis = redis;
    this.#commands = defineCommands(redis);
  }

  take(take: SegmentTake): Promise<RawTakeReply> {
    const { keys, batch } = take;
    const args = takeArguments(take);
    const reply =
      batch.fencingToken === undefined
        ? this.#commands.take(...takeKeys(keys), ...args)
        : this.#commands.fencedTake(fenceKey(keys.lock), ...takeKeys(keys), batch.fencingToken, ...args);
    return reply as Promise<RawTakeReply>;
  }

  /** @returns the replies in the order of the takes, each with the error of this take alone, if it failed */
  async takes(takes: readonly SegmentTake[]): Promise<(RawTakeReply | Error)[]> {
    if (takes.length === 1) return [await this.take(takes[0]!)];
    const keys = takes.flatMap((take) => takeKeys(take.keys));
    const args = takes.flatMap(takeArguments);
    const replies = await this.#commands.takes(keys.length, ...keys, ...args);
    return (replies as RawTakeReply[]).map((reply) =>
      typeof reply === 'string' && reply.startsWith(ERROR)
        ? new ReplyError(reply.slice(ERROR.length))
        : reply,
    );
  }

  /** Sent with its source, because the number of keys differs from sale to sale, and refills are rare. */
  refillAndTake(
    refill: Want & { readonly segments: string[]; readonly sale: string },
    take: SegmentTake,
  ): Promise<RawRefillReply> {
    const { generation, fencingToken } = take.batch;
    const refillKeys = [...refill.segments, refill.sale];
    const refillArguments = [generation, refill.receiver + 1, refill.least, refill.units];
    const [lua, fenceKeys, token] =
      fencingToken === undefined
        ? [REFILL_AND_TAKE, [], []]
        : [FENCED_REFILL_AND_TAKE, [fenceKey(take.keys.lock)], [fencingToken]];
    const keys = [...fenceKeys, ...refillKeys, ...takeKeys(take.keys)];
    return this.#redis.eval(
      lua,
      keys.length,
      ...keys,
      ...token,
      refillKeys.length,
      refillArguments.length,
      ...refillArguments,
      ...takeArguments(take),
    ) as Promise<RawRefillReply>;
  }

  recall(keys: SegmentKeys, generation: number, buyerIds: readonly string[]) {
    const { segment, buyers } = keys;
    type Reply = Promise<string | [committed: number, ...records: (string | null)[]]>;
    return this.#commands.recall(segment, buyers, generation, ...buyerIds) as Reply;
  }

  /**
   * If the server is no longer a primary, the connection to it is dropped. The client does so by itself (clients.ts) only if the
   * error is the reply of the whole command, and this script hands it on as that of each segment.
   * @throws BackendCorrupt if segments have invalid data; the others are advanced. NotExecuted if the server is no longer a primary
   */
  async advance(cursors: readonly CursorArguments[]): Promise<void> {
    const keys = cursors.flatMap(({ keys: { segment, log } }) => [segment, log]);
    const args = cursors.flatMap(({ generation, seq, orders, tail }) => [generation, seq, orders, tail]);
    const replies = (await this.#commands.advance(keys.length, ...keys, ...args)) as (number | string)[];
    const failed = replies.find((reply) => typeof reply === 'string' && reply.startsWith(ERROR));
    if (failed === undefined) return;
    const reason = replyReason(String(failed).slice(ERROR.length));
    if (!DEMOTED.test(reason)) throw new BackendCorrupt(`a cursor could not be written: ${failed}`);
    this.#redis.disconnect(true);
    throw new NotExecuted(`a cursor could not be written: ${reason}`);
  }

  /** @returns heads and entries in the order of the logs. @param maxEntries of each log; 0: heads only */
  async readLogs(logs: readonly LogArguments[], maxEntries: number): Promise<RawRead[]> {
    const keys = logs.flatMap(({ keys: { segment, log } }) => [segment, log]);
    const args = logs.flatMap(({ generation, seq }) => [generation, seq]);
    const reply = await this.#commands.readLogs(keys.length, ...keys, maxEntries, ...args);
    type Raw = string | [head: (string | null)[], entries: RawEntry[]];
    return (reply as Raw[]).map((raw) =>
      typeof raw === 'string' ? [new BackendCorrupt(raw)] : [null, ...raw],
    );
  }

  compensate(keys: SegmentKeys, generation: number, buyerId: string, orderId: string, units: number) {
    const { segment, buyers } = keys;
    type Reply = Promise<number | string>;
    return this.#commands.compensate(segment, buyers, generation, buyerId, orderId, units) as Reply;
  }

  beginDraft({ draft }: SegmentKeys, stamp: string) {
    return this.#commands.beginDraft(draft, stamp, DRAFT_KEPT_MS) as Promise<number>;
  }

  /** `records`: buyerId and record in turn. */
  draftHoldings({ draft }: SegmentKeys, before: string, stamp: string, records: readonly string[]) {
    return this.#commands.draftHoldings(draft, before, stamp, ...records) as Promise<number | string>;
  }

  /** @param draft its stamp; `''`: none. @param upTo `''`: its buyers are loaded afterwards */
  loadSegment(
    keys: SegmentKeys,
    generation: number,
    units: { readonly left: number; readonly limit: number },
    { draft: stamp, upTo }: { readonly draft: string; readonly upTo: string },
  ) {
    const { segment, buyers, log, draft } = keys;
    const args = [generation, units.left, units.limit, stamp, upTo];
    return this.#commands.loadSegment(segment, buyers, log, draft, ...args) as Promise<number | string>;
  }

  /** `records`: buyerId and record in turn. */
  loadHoldings(
    { segment, buyers }: SegmentKeys,
    generation: number,
    { after, upTo }: Pick<HoldingsPart, 'after' | 'upTo'>,
    records: readonly string[],
  ) {
    type Reply = Promise<number | string>;
    return this.#commands.loadHoldings(segment, buyers, generation, after, upTo, ...records) as Reply;
  }

  /** @returns how many of their keys existed */
  removeSegments(segments: readonly SegmentKeys[], generation: number, which: Removable) {
    const keys = segments.flatMap(({ segment, buyers, log, draft }) => [segment, buyers, log, draft]);
    const args = [...keys, generation, which];
    return this.#commands.removeSegments(keys.length, ...args) as Promise<number | string>;
  }

  archiveSale(sale: string, generation: number) {
    return this.#commands.archiveSale(sale, generation, TOMBSTONE_KEPT_MS) as Promise<number | string>;
  }

  credit(segment: string, generation: number, movement: string, units: number) {
    return this.#commands.credit(segment, generation, movement, units) as Promise<number | string>;
  }

  withdraw(segment: string, generation: number, movement: string, most: number) {
    return this.#commands.withdraw(segment, generation, movement, most) as Promise<number | string>;
  }

  giveBack(segment: string, generation: number, movement: string) {
    return this.#commands.giveBack(segment, generation, movement) as Promise<number | string>;
  }

  transfer(donor: string, receiver: string, generation: number, units: number) {
    return this.#commands.transfer(donor, receiver, generation, units) as Promise<number | string>;
  }

  freeze(segment: string, generation: number) {
    return this.#commands.freeze(segment, generation) as Promise<number | string>;
  }

  setState(
    segments: string[],
    generation: number,
    state: SaleState,
    written: { readonly rules: string; readonly limit: number; readonly revision: number },
    publish: boolean,
  ) {
    const { rules, limit, revision } = written;
    const args = [generation, state, publish ? 'publish' : '', rules, limit, AFTER_ALL_IDS, revision];
    return this.#redis.eval(SET_STATE, segments.length, ...segments, ...args) as Promise<number | string>;
  }

  publishSale(
    sale: string,
    record: {
      readonly generation: number;
      readonly state: SaleState;
      readonly definition: string;
      readonly rules: string;
      readonly revision: number;
    },
    publish: boolean,
  ) {
    const { generation, state, definition, rules, revision } = record;
    const args = [generation, state, definition, rules, publish ? 'publish' : '', revision];
    return this.#commands.publishSale(sale, ...args) as Promise<number | string>;
  }

  /** A text for each sale, as `encodeDigest` makes it if the sale is as expected. */
  digest(sales: readonly { readonly segments: readonly string[]; readonly sale: string }[]) {
    const keys = sales.flatMap(({ segments, sale }) => [...segments, sale]);
    const args = sales.map(({ segments }) => segments.length);
    return this.#commands.digest(keys.length, ...keys, ...args) as Promise<string[]>;
  }

  appendEvents(stream: string, parts: readonly EventPart[], maxEvents: number) {
    const args = parts.flatMap(({ row, kind, at, lines }) => [row, kind, at, lines]);
    return this.#commands.appendEvents(stream, maxEvents, ...args) as Promise<
      [events: number, reachMs: number, refused: string, ...missed: (string | number)[]]
    >;
  }

  audit(segments: string[], generation: number) {
    type Reply = Promise<RawAudit[]>;
    return this.#redis.eval(AUDIT, segments.length, ...segments, generation) as Reply;
  }

  correct(segment: string, generation: number, field: 'left' | 'supplied', off: number | undefined) {
    return this.#commands.correct(segment, generation, field, off ?? 'none') as Promise<number | string>;
  }

  /** `words`: the words of one buyer's record. */
  remember(
    keys: SegmentKeys,
    generation: number,
    buyerId: string,
    words: readonly string[],
    returned: number,
  ) {
    const { segment, buyers } = keys;
    const args = [generation, buyerId, returned, ...words];
    return this.#commands.remember(segment, buyers, ...args) as Promise<number | string>;
  }

  snapshot(segments: string[], generation: number) {
    type Reply = Promise<RawSnapshot[]>;
    return this.#redis.eval(SNAPSHOT, segments.length, ...segments, generation) as Reply;
  }
}

/** A position in a segment's log. */
export interface LogArguments {
  readonly keys: SegmentKeys;
  readonly generation: number;
  readonly seq: number;
}

/** How far a segment's log is applied. */
export interface CursorArguments extends LogArguments {
  readonly orders: number;
  /** First order id of the last applied entry; `''` if unknown. */
  readonly tail: string;
}

/** A batch for one segment. */
export interface SegmentTake {
  readonly keys: SegmentKeys;
  readonly batch: TakeBatch;
  /** Orders that the segment's log may hold beyond the cursor. */
  readonly maxLogOrders: number;
  /** The take may be made only before this time of the server's clock, in milliseconds since 1970; 0: at any time. */
  readonly madeBefore: number;
}

function takeKeys({ segment, buyers, log }: SegmentKeys): string[] {
  return [segment, buyers, log];
}

/** A word costs less than an argument. */
function takeArguments({ batch, maxLogOrders, madeBefore }: SegmentTake): string[] {
  const { generation, lane, ticket, answeredTicket, newest, orders, rules = NO_RULES } = batch;
  const attempt = `${generation} ${lane} ${ticket} ${maxLogOrders} ${answeredTicket}`;
  const known = `${newest.seq} ${newest.tail} ${newest.orders}`;
  return [`${attempt} ${known} ${madeBefore} ${rules}`, encodeOrders(orders), encodeNotes(orders)];
}
