import type { Redis } from 'ioredis';
import type {
  Compensation,
  KnownEntry,
  LogEntry,
  LogPosition,
  LogRead,
  OrderLog,
  Watermark,
} from '../contract.ts';
import { BackendCorrupt, StaleGeneration } from '../errors.ts';
import { corking } from './clients.ts';
import { decodeCount, decodeOrders } from './codec.ts';
import type { Keys } from './keys.ts';
import { type Scripts, STALE } from './scripts.ts';

const HEAD_FIELDS = ['generation', 'seq', 'tail', 'orders', 'state', 'lost'] as const;

type StreamEntry = [id: string, fields: string[]];

/**
 * The order logs: one stream per segment, whose entry ids are `generation-seq`. The ids only address entries; that
 * entries follow on is checked by sync through the chain of tails.
 */
export class RedisLog implements OrderLog {
  readonly #redis: Redis;
  readonly #cork: () => void;
  readonly #scripts: Scripts;
  readonly #keys: Keys;

  constructor(redis: Redis, scripts: Scripts, keys: Keys) {
    this.#redis = redis;
    this.#cork = corking(redis);
    this.#scripts = scripts;
    this.#keys = keys;
  }

  async readLog(positions: readonly LogPosition[], maxEntries: number): Promise<readonly LogRead[]> {
    if (positions.length === 0) return [];
    const pipeline = this.#redis.pipeline();
    for (const position of positions) {
      pipeline.hmget(this.#keys.segment(position).segment, ...HEAD_FIELDS);
    }
    for (const position of maxEntries > 0 ? positions : []) {
      const after = `(${position.generation}-${position.seq}`;
      // The end is this generation's last id: the log may be replaced between the two commands.
      pipeline.xrange(this.#keys.segment(position).log, after, position.generation, 'COUNT', maxEntries);
    }
    const replies = (await pipeline.exec()) ?? [];
    return positions.map((position, i) => decodeRead(position, replies[i], replies[positions.length + i]));
  }

  async advance(watermarks: readonly Watermark[]): Promise<void> {
    if (watermarks.length === 0) return;
    this.#cork();
    const advanced = watermarks.map((w) =>
      this.#scripts.advance(this.#keys.segment(w), w.generation, w.seq, w.orders, w.tails?.at(-1) ?? ''),
    );
    // In one write, and the message last: who hears it and asks the segment finds the cursor there.
    const told = this.#redis.publish(this.#keys.watermarks, JSON.stringify(watermarks));
    await Promise.all([...advanced, told]);
  }

  async compensate(c: Compensation): Promise<void> {
    const keys = this.#keys.segment(c);
    const reply = await this.#scripts.compensate(keys, c.generation, c.buyerId, c.orderId, c.units);
    if (reply === STALE) throw new StaleGeneration(c.saleId, c.generation);
    // The epoch is raised on every call, also when the order was gone: a crash may have come between the two.
    if (c.units > 0) {
      await this.#redis.hincrby(this.#keys.sale(c.saleId), 'epoch', 1);
      await this.#redis.publish(this.#keys.sales, c.saleId);
    }
  }
}

type PipelineReply = [error: Error | null, reply: unknown];

/** What one segment holds is no reason to read none: a key that is not what it should be faults its own read only. */
function decodeRead(position: LogPosition, head?: PipelineReply, entries?: PipelineReply): LogRead {
  const error = head?.[0] ?? entries?.[0];
  if (error && error.name !== 'ReplyError') throw error;
  try {
    if (error) throw new BackendCorrupt(error.message);
    const [generation, seq, tail, orders, state, lost] = (head?.[1] ?? []) as (string | null)[];
    if (generation !== String(position.generation)) return { position, head: undefined, entries: [] };
    return {
      position,
      head: {
        seq: decodeCount(seq),
        tail: tail ?? '',
        orders: decodeCount(orders),
        frozen: state === 'frozen',
        ...(lost ? { lost: decodeLost(lost) } : {}),
      },
      entries: ((entries?.[1] ?? []) as StreamEntry[]).map(decodeEntry),
    };
  } catch (fault) {
    if (!(fault instanceof BackendCorrupt)) throw fault;
    return { position, head: undefined, entries: [], fault: fault.message };
  }
}

/** The mark that take.lua leaves. */
function decodeLost(mark: string): KnownEntry {
  const [seq, orders, tail] = mark.split(' ');
  return { seq: decodeCount(seq), tail: tail ?? '', orders: decodeCount(orders) };
}

function decodeEntry([id, fields]: StreamEntry): LogEntry {
  const values = new Map<string, string>();
  for (let i = 0; i < fields.length; i += 2) values.set(fields[i]!, fields[i + 1]!);
  const seq = Number(id.slice(id.indexOf('-') + 1));
  const [previous, count, lines] = [values.get('p'), values.get('n'), values.get('o')];
  if (previous === undefined || count === undefined || lines === undefined) {
    throw new BackendCorrupt(`log entry ${id} has the fields ${[...values.keys()].join(', ')}`);
  }
  const orders = decodeOrders(lines);
  return { seq, previous, tail: orders[0]!.orderId, ordersSoFar: decodeCount(count), orders };
}
