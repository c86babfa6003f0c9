import { chunksOf } from '../../lib/chunks-of.ts';
import { TickScheduler } from '../../lib/tick-scheduler.ts';
import type { RedisClient } from '../../redis/clients.ts';
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
import { reopenSale } from './protocol/change-counter.ts';
import { corrupt, decodeCount, decodeOrders, decodeState, withNotes } from './protocol/codec.ts';
import type { Keys } from './protocol/keys.ts';
import { type RawEntry, type RawRead, refuseStale, type Scripts } from './protocol/scripts.ts';

/** The fields of a segment that say how far its log goes. */
export const HEAD_FIELDS = [
  'generation',
  'seq',
  'tail',
  'orders',
  'committed',
  'state',
  'rules',
  'lost',
] as const;

/** Logs that one command reads or advances. Redis does nothing else meanwhile, so it should not last longer than a large take. */
const MAX_LOGS_OF_COMMAND = 64;

/**
 * The order logs: one stream per segment, whose entry ids are `generation-seq`. The ids only address entries; sync
 * checks with the chain of tails that no entry is missing.
 */
export class RedisLog implements OrderLog {
  readonly #redis: RedisClient;
  readonly #scripts: Scripts;
  readonly #keys: Keys;
  readonly #ticks = new TickScheduler();
  readonly #reopening = new Map<string, Promise<void>>();
  readonly #cork: () => void;

  /** @param cork called before commands that should leave in one write */
  constructor(redis: RedisClient, scripts: Scripts, keys: Keys, cork: () => void) {
    this.#redis = redis;
    this.#scripts = scripts;
    this.#keys = keys;
    this.#cork = cork;
  }

  async readLog(positions: readonly LogPosition[], maxEntries: number): Promise<readonly LogRead[]> {
    const replies = await this.read(positions, maxEntries);
    return positions.map((position, i) => decodeRead(position, replies[i]!));
  }

  /** Reads heads and entries. One command serves many logs, because sending a command costs more than its work. */
  protected async read(positions: readonly LogPosition[], maxEntries: number): Promise<RawRead[]> {
    const logs = positions.map((p) => ({
      keys: this.#keys.segment(p),
      generation: p.generation,
      seq: p.seq,
    }));
    const reads = await Promise.all(
      chunksOf(logs, MAX_LOGS_OF_COMMAND).map((chunk) => this.#scripts.readLogs(chunk, maxEntries)),
    );
    return reads.flat();
  }

  async advance(watermarks: readonly Watermark[]): Promise<void> {
    if (watermarks.length === 0) return;
    this.#cork();
    const advanced = this.note(watermarks);
    // In one write, with the message last: a node that hears it and asks the segment finds the cursor there.
    const told = this.#redis.publish(this.#keys.watermarks, JSON.stringify(watermarks));
    await Promise.all([...advanced, told]);
  }

  /** Writes the cursors and trims the logs. */
  protected note(watermarks: readonly Watermark[], logsOfCommand = MAX_LOGS_OF_COMMAND): Promise<void>[] {
    const cursors = watermarks.map((w) => ({
      keys: this.#keys.segment(w),
      generation: w.generation,
      seq: w.seq,
      orders: w.orders,
      tail: w.tails?.at(-1) ?? '',
    }));
    return chunksOf(cursors, logsOfCommand).map((chunk) => this.#scripts.advance(chunk));
  }

  async compensate(c: Compensation): Promise<void> {
    const keys = this.#keys.segment(c);
    const reply = await this.#scripts.compensate(keys, c.generation, c.buyerId, c.orderId, c.units);
    refuseStale(reply, c);
    // The epoch is raised on every call, even if the order was gone: a crash may have come between the two steps.
    if (c.units > 0) await this.#reopen(c.saleId);
  }

  /** Compensations of one turn of the event loop raise the epoch once: a thousand orders may expire together. */
  #reopen(saleId: string): Promise<void> {
    const joined = this.#reopening.get(saleId);
    if (joined) return joined;
    const reopened = this.#ticks.next().then(async () => {
      // A later compensation returns its units after this point, so it must raise the epoch again.
      this.#reopening.delete(saleId);
      await reopenSale(this.#redis, this.#keys, saleId);
    });
    this.#reopening.set(saleId, reopened);
    return reopened;
  }
}

/** A segment with invalid data faults only its own read. */
function decodeRead(position: LogPosition, raw: RawRead): LogRead {
  try {
    const [error, head, entries] = raw;
    if (error) throw error;
    const [generation, seq, tail, orders, committed, state, rules, lost] = head;
    if (generation !== String(position.generation)) return { position, head: undefined, entries: [] };
    return {
      position,
      head: {
        seq: decodeCount(seq),
        tail: decodeName(tail),
        orders: decodeCount(orders),
        committed: decodeCount(committed),
        state: decodeState(state),
        ...(rules ? { rules } : {}),
        ...(lost ? { lost: decodeLost(lost) } : {}),
      },
      entries: decodeEntries(entries, generation),
    };
  } catch (fault) {
    if (!(fault instanceof BackendCorrupt)) throw fault;
    return { position, head: undefined, entries: [], fault: fault.message };
  }
}

/** The mark of a loss, which take.lua writes. */
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

/** Checks that each entry has counted its orders. Sync checks that the entries follow each other. */
function decodeEntries(found: readonly RawEntry[], generation: string): LogEntry[] {
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

function decodeEntry([id, fields]: RawEntry, generation: string): LogEntry {
  const [p, previous, n, count, o, lines, x, notes, ...others] = fields;
  const isKnown =
    p === 'p' && n === 'n' && o === 'o' && (x === undefined || x === 'x') && others.length === 0;
  if (!isKnown) {
    const names = fields.filter((_, i) => i % 2 === 0).join(', ');
    return corrupt(`log entry ${id} has the fields`, names);
  }
  if (!id.startsWith(`${generation}-`)) return corrupt(`a log of generation ${generation} holds`, id);
  const taken = decodeOrders(lines!);
  const orders = notes === undefined ? taken : withNotes(taken, notes);
  return {
    seq: decodeCount(id.slice(generation.length + 1)),
    previous: decodeName(previous),
    tail: orders[0]!.orderId,
    ordersSoFar: decodeCount(count),
    orders,
  };
}
