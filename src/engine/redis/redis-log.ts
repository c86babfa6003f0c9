import { TickScheduler } from '../../lib/tick-scheduler.ts';
import type { RedisClient } from '../../redis/clients.ts';
import type { Command, Reply, SendAll } from '../../redis/send-all.ts';
import type {
  Compensation,
  KnownEntry,
  LogEntry,
  LogPosition,
  LogRead,
  OrderLog,
  Watermark,
} from '../contract.ts';
import { BackendCorrupt } from '../errors.ts';
import { isOrderId } from '../order-id.ts';
import { reopenSale } from './change-counter.ts';
import { corrupt, decodeCount, decodeOrders, decodeState } from './codec.ts';
import type { Keys } from './keys.ts';
import { refuseStale, type Scripts } from './scripts.ts';

const HEAD_FIELDS = ['generation', 'seq', 'tail', 'orders', 'state', 'rules', 'lost'] as const;

type StreamEntry = [id: string, fields: string[]];

/**
 * The order logs: one stream per segment, whose entry ids are `generation-seq`. The ids only address entries; that
 * entries follow on is checked by sync through the chain of tails.
 */
export class RedisLog implements OrderLog {
  readonly #redis: RedisClient;
  readonly #scripts: Scripts;
  readonly #keys: Keys;
  readonly #ticks = new TickScheduler();
  readonly #reopening = new Map<string, Promise<void>>();
  readonly #sendAll: SendAll;
  readonly #cork: () => void;

  /** @param cork called before commands that had better leave in one write */
  constructor(redis: RedisClient, scripts: Scripts, keys: Keys, sendAll: SendAll, cork: () => void) {
    this.#redis = redis;
    this.#scripts = scripts;
    this.#keys = keys;
    this.#sendAll = sendAll;
    this.#cork = cork;
  }

  async readLog(positions: readonly LogPosition[], maxEntries: number): Promise<readonly LogRead[]> {
    if (positions.length === 0) return [];
    const commands: Command[] = positions.map((position) => [
      'hmget',
      this.#keys.segment(position).segment,
      ...HEAD_FIELDS,
    ]);
    for (const position of maxEntries > 0 ? positions : []) {
      const after = `(${position.generation}-${position.seq}`;
      const { log } = this.#keys.segment(position);
      // The end is this generation's last id: the log may be replaced between the two commands.
      commands.push(['xrange', log, after, position.generation, 'COUNT', maxEntries]);
    }
    const replies = await this.#sendAll(commands);
    return positions.map((position, i) => decodeRead(position, replies[i], replies[positions.length + i]));
  }

  async advance(watermarks: readonly Watermark[]): Promise<void> {
    if (watermarks.length === 0) return;
    this.#cork();
    const advanced = this.note(watermarks);
    // In one write, and the message last: who hears it and asks the segment finds the cursor there.
    const told = this.#redis.publish(this.#keys.watermarks, JSON.stringify(watermarks));
    await Promise.all([...advanced, told]);
  }

  /** Notes the cursors and trims the logs; each by itself. */
  protected note(watermarks: readonly Watermark[]): Promise<number | string>[] {
    return watermarks.map((w) =>
      this.#scripts.advance(this.#keys.segment(w), w.generation, w.seq, w.orders, w.tails?.at(-1) ?? ''),
    );
  }

  async compensate(c: Compensation): Promise<void> {
    const keys = this.#keys.segment(c);
    const reply = await this.#scripts.compensate(keys, c.generation, c.buyerId, c.orderId, c.units);
    refuseStale(reply, c);
    // The epoch is raised on every call, also when the order was gone: a crash may have come between the two.
    if (c.units > 0) await this.#reopen(c.saleId);
  }

  /** Compensations that are done in one turn raise the epoch once: a thousand orders may expire together. */
  #reopen(saleId: string): Promise<void> {
    const joined = this.#reopening.get(saleId);
    if (joined) return joined;
    const reopened = this.#ticks.next().then(async () => {
      // Whoever comes from here on has given his units back behind this.
      this.#reopening.delete(saleId);
      await reopenSale(this.#redis, this.#keys, saleId);
    });
    this.#reopening.set(saleId, reopened);
    return reopened;
  }
}

/** What one segment holds is no reason to read none: a key that is not what it should be faults its own read only. */
function decodeRead(position: LogPosition, head?: Reply, entries?: Reply): LogRead {
  const error = head?.[0] ?? entries?.[0];
  if (error && error.name !== 'ReplyError') throw error;
  try {
    if (error) throw new BackendCorrupt(error.message);
    const [generation, seq, tail, orders, state, rules, lost] = (head?.[1] ?? []) as (string | null)[];
    if (generation !== String(position.generation)) return { position, head: undefined, entries: [] };
    return {
      position,
      head: {
        seq: decodeCount(seq),
        tail: decodeName(tail),
        orders: decodeCount(orders),
        state: decodeState(state),
        ...(rules ? { rules } : {}),
        ...(lost ? { lost: decodeLost(lost) } : {}),
      },
      entries: decodeEntries((entries?.[1] ?? []) as StreamEntry[], generation),
    };
  } catch (fault) {
    if (!(fault instanceof BackendCorrupt)) throw fault;
    return { position, head: undefined, entries: [], fault: fault.message };
  }
}

/** The mark that take.lua leaves. */
function decodeLost(mark: string): KnownEntry {
  const [seq, orders, tail, ...rest] = mark.split(' ');
  if (rest.length > 0) return corrupt('the mark of a loss is', mark);
  return { seq: decodeCount(seq), tail: decodeName(tail), orders: decodeCount(orders) };
}

/** The first order id of an entry; `''` before the first one. */
function decodeName(text: string | null | undefined): string {
  if (!text) return '';
  return isOrderId(text) ? text : corrupt('the name of an entry is', text);
}

/** Whether they follow on is judged by sync; that each has counted its own orders is a matter of what was written. */
function decodeEntries(found: readonly StreamEntry[], generation: string): LogEntry[] {
  const entries = found.map((entry) => decodeEntry(entry, generation));
  for (const [i, { seq, ordersSoFar, orders }] of entries.entries()) {
    const before = entries[i - 1];
    const isNext = before !== undefined && before.seq + 1 === seq;
    const counted = ordersSoFar - orders.length;
    if (isNext ? counted !== before.ordersSoFar : counted < 0)
      return corrupt(`log entry ${generation}-${seq} counts`, ordersSoFar);
  }
  return entries;
}

function decodeEntry([id, fields]: StreamEntry, generation: string): LogEntry {
  const [p, previous, n, count, o, lines, ...others] = fields;
  if (p !== 'p' || n !== 'n' || o !== 'o' || others.length > 0) {
    const names = fields.filter((_, i) => i % 2 === 0).join(', ');
    return corrupt(`log entry ${id} has the fields`, names);
  }
  if (!id.startsWith(`${generation}-`)) return corrupt(`a log of generation ${generation} holds`, id);
  const orders = decodeOrders(lines ?? '');
  return {
    seq: decodeCount(id.slice(generation.length + 1)),
    previous: decodeName(previous),
    tail: orders[0]!.orderId,
    ordersSoFar: decodeCount(count),
    orders,
  };
}
