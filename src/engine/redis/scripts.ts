/** One typed function per script. Nothing else calls a script, and callers never build argument arrays. */
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import type { KnownEntry, SaleState, TakeOrder } from '../contract.ts';
import { encodeOrders } from './codec.ts';
import { fenced, fenceKey } from './fenced.ts';
import type { SegmentKeys } from './keys.ts';

export const STALE = 'stale';

/** A script, with the parts that it names in lines of "--include". */
function source(name: string): string {
  const text = readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8');
  return text.replace(/--include ([\w-]+)/g, (_, part: string) => source(part));
}

const SCRIPTS = {
  take: { lua: source('take'), numberOfKeys: 3 },
  fencedTake: { lua: fenced(source('take')), numberOfKeys: 4 },
  recall: { lua: source('recall'), numberOfKeys: 2 },
  advance: { lua: source('advance'), numberOfKeys: 2 },
  compensate: { lua: source('compensate'), numberOfKeys: 2 },
  freeze: { lua: source('freeze'), numberOfKeys: 1 },
  loadSegment: { lua: source('load-segment'), numberOfKeys: 3 },
  loadHoldings: { lua: source('load-holdings'), numberOfKeys: 2 },
  publishSale: { lua: source('publish-sale'), numberOfKeys: 1 },
} as const;

/** Scripts over all segments of a sale have as many keys as the sale has segments. */
const REFILL_AND_TAKE = source('refill-and-take');
const FENCED_REFILL_AND_TAKE = fenced(REFILL_AND_TAKE);
const SET_STATE = source('set-state');
const SNAPSHOT = source('snapshot');

export type RawTakeReply =
  | string
  | [seq: number, committed: number, left: number, orders: number, ...results: (number | string)[]];
export type RawRefillReply = string | [[total: number, moved: number, epoch: number], RawTakeReply];

type Argument = string | number;
type Commands = Record<keyof typeof SCRIPTS, (...args: Argument[]) => Promise<unknown>>;

export class Scripts {
  readonly #redis: Redis;
  readonly #commands: Commands;

  constructor(redis: Redis) {
    this.#redis = redis;
    for (const [name, script] of Object.entries(SCRIPTS)) redis.defineCommand(`stockade:${name}`, script);
    this.#commands = Object.fromEntries(
      Object.entries(SCRIPTS).map(([name, script]) => {
        const command = (redis as unknown as Commands)[`stockade:${name}` as keyof Commands].bind(redis);
        return [name, (...args: Argument[]) => command(...args).catch(orWithSource(redis, script, args))];
      }),
    ) as Commands;
  }

  take(keys: SegmentKeys, head: TakeHead, orders: readonly TakeOrder[]): Promise<RawTakeReply> {
    const { segment, buyers, log, lock } = keys;
    const args = takeArguments(head, orders);
    const reply =
      head.fencingToken === undefined
        ? this.#commands.take(segment, buyers, log, ...args)
        : this.#commands.fencedTake(fenceKey(lock), segment, buyers, log, head.fencingToken, ...args);
    return reply as Promise<RawTakeReply>;
  }

  /** Sent with its source, as the number of keys differs from sale to sale; refills are rare. */
  refillAndTake(
    refill: { segments: string[]; sale: string; receiver: number; least: number; wanted: number },
    keys: SegmentKeys,
    head: TakeHead,
    orders: readonly TakeOrder[],
  ): Promise<RawRefillReply> {
    const takeKeys = [keys.segment, keys.buyers, keys.log];
    const refillKeys = [...refill.segments, refill.sale];
    const refillArguments = [head.generation, refill.receiver + 1, refill.least, refill.wanted];
    const { fencingToken } = head;
    const [lua, fenceKeys, token] =
      fencingToken === undefined
        ? [REFILL_AND_TAKE, [], []]
        : [FENCED_REFILL_AND_TAKE, [fenceKey(keys.lock)], [fencingToken]];
    return this.#redis.eval(
      lua,
      fenceKeys.length + refillKeys.length + takeKeys.length,
      ...fenceKeys,
      ...refillKeys,
      ...takeKeys,
      ...token,
      refillKeys.length,
      refillArguments.length,
      ...refillArguments,
      ...takeArguments(head, orders),
    ) as Promise<RawRefillReply>;
  }

  recall(keys: SegmentKeys, generation: number, buyerIds: readonly string[]) {
    const { segment, buyers } = keys;
    type Reply = Promise<string | [committed: number, ...records: (string | null)[]]>;
    return this.#commands.recall(segment, buyers, generation, ...buyerIds) as Reply;
  }

  advance(keys: SegmentKeys, generation: number, seq: number, orders: number, tail: string) {
    const { segment, log } = keys;
    return this.#commands.advance(segment, log, generation, seq, orders, tail) as Promise<number | string>;
  }

  compensate(keys: SegmentKeys, generation: number, buyerId: string, orderId: string, units: number) {
    const { segment, buyers } = keys;
    type Reply = Promise<number | string>;
    return this.#commands.compensate(segment, buyers, generation, buyerId, orderId, units) as Reply;
  }

  loadSegment(keys: SegmentKeys, generation: number, left: number, limit: number) {
    const { segment, buyers, log } = keys;
    return this.#commands.loadSegment(segment, buyers, log, generation, left, limit) as Promise<
      number | string
    >;
  }

  /** `records`: buyerId and record in turn. */
  loadHoldings(keys: SegmentKeys, generation: number, records: readonly string[]) {
    const { segment, buyers } = keys;
    return this.#commands.loadHoldings(segment, buyers, generation, ...records) as Promise<number | string>;
  }

  freeze(segment: string, generation: number) {
    return this.#commands.freeze(segment, generation) as Promise<number | string>;
  }

  setState(segments: string[], generation: number, state: SaleState, publish: boolean) {
    const args = [...segments, generation, state, publish ? 'publish' : ''];
    return this.#redis.eval(SET_STATE, segments.length, ...args) as Promise<number | string>;
  }

  publishSale(sale: string, generation: number, state: SaleState, definition: string) {
    return this.#commands.publishSale(sale, generation, state, definition) as Promise<number | string>;
  }

  snapshot(segments: string[], generation: number) {
    type Reply = Promise<(string[] | null)[]>;
    return this.#redis.eval(SNAPSHOT, segments.length, ...segments, generation) as Reply;
  }
}

/**
 * ioredis sends a script that Redis has forgotten once more by its hash. If it was forgotten again in between, it goes
 * with its source: NOSCRIPT means that nothing was done.
 */
function orWithSource(redis: Redis, script: { lua: string; numberOfKeys: number }, args: Argument[]) {
  return (error: Error) => {
    if (!error.message.startsWith('NOSCRIPT')) throw error;
    return redis.eval(script.lua, script.numberOfKeys, ...args);
  };
}

export interface TakeHead {
  readonly generation: number;
  readonly lane: number;
  readonly ticket: number;
  readonly maxLogOrders: number;
  readonly answeredTicket: number;
  readonly newest: KnownEntry;
  /** `undefined`: the take is not under a lock. */
  readonly fencingToken?: number | undefined;
}

function takeArguments(head: TakeHead, orders: readonly TakeOrder[]): Argument[] {
  const { generation, lane, ticket, maxLogOrders, answeredTicket, newest } = head;
  const { seq, tail, orders: known } = newest;
  return [generation, lane, ticket, maxLogOrders, answeredTicket, seq, tail, known, encodeOrders(orders)];
}
