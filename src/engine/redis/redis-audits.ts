import type { RedisClient } from '../../redis/clients.ts';
import type {
  AuditedHolding,
  AuditStore,
  Holding,
  SegmentAudit,
  SegmentCounts,
  SegmentRef,
} from '../contract.ts';
import { BackendCorrupt } from '../errors.ts';
import { decodeRecord, encodeRecord, isSegmentState } from './protocol/codec.ts';
import type { Keys } from './protocol/keys.ts';
import { type RawAudit, refuseStale, type Scripts } from './protocol/scripts.ts';

/** Records read at a time. */
const PAGE_RECORDS = 1_000;
/** The reply of remember.lua if more units were given back since. */
const RETURNED = 'returned';
const FIELDS = [
  'state',
  'left',
  'taken',
  'supplied',
  'returned',
  'credited',
  'withdrawn',
  'seq',
] as const satisfies readonly Exclude<keyof SegmentCounts, 'inTransit'>[];
type Field = (typeof FIELDS)[number];

export class RedisAudits implements AuditStore {
  readonly #redis: RedisClient;
  readonly #scripts: Scripts;
  readonly #keys: Keys;

  constructor(redis: RedisClient, scripts: Scripts, keys: Keys) {
    this.#redis = redis;
    this.#scripts = scripts;
    this.#keys = keys;
  }

  async audit(saleId: string, segments: number, generation: number): Promise<readonly SegmentAudit[]> {
    return (await this.#scripts.audit(this.#keys.segments(saleId, segments), generation)).map(decodeAudit);
  }

  async records(
    ref: SegmentRef,
    page: string,
  ): Promise<{ holdings: readonly AuditedHolding[]; next: string }> {
    const { buyers } = this.#keys.segment(ref);
    const [next, flat] = await this.#redis.hscan(buyers, page || '0', 'COUNT', PAGE_RECORDS);
    const holdings = flat.flatMap((buyerId, i) => (i % 2 === 0 ? [audited(buyerId, flat[i + 1]!)] : []));
    return { holdings, next: next === '0' ? '' : next };
  }

  async correct(ref: SegmentRef, field: 'left' | 'supplied', off: number | undefined): Promise<boolean> {
    const { segment } = this.#keys.segment(ref);
    const done = await this.#scripts.correct(segment, ref.generation, field, off);
    refuseStale(done, ref);
    return done === 1;
  }

  async remember(ref: SegmentRef, { buyerId, orders }: Holding, returned: number): Promise<boolean> {
    const words = orders.map((order) => encodeRecord([order]));
    const keys = this.#keys.segment(ref);
    const reply = await this.#scripts.remember(keys, ref.generation, buyerId, words, returned);
    if (reply === RETURNED) return false;
    refuseStale(reply, ref);
    return true;
  }
}

function audited(buyerId: string, record: string): AuditedHolding {
  try {
    return { buyerId, orders: decodeRecord(record) };
  } catch (error) {
    if (!(error instanceof BackendCorrupt)) throw error;
    return { buyerId, orders: [], fault: error.message };
  }
}

/** In the order of audit.lua. */
export function decodeAudit(values: RawAudit): SegmentAudit {
  if (values === null) return { found: 'nothing' };
  if (typeof values === 'string') return { found: 'fault', fault: values };
  const held = Object.fromEntries(FIELDS.map((name, i) => [name, values[i]])) as Record<Field, string | null>;
  const wrong = FIELDS.filter((name) => !isSound(name, held[name]));
  const { state, ...counts } = held;
  const counters = Object.fromEntries(Object.entries(counts).map(([name, text]) => [name, Number(text)]));
  const found = { state, ...counters, inTransit: 0 } as unknown as SegmentCounts;
  if (wrong.length === 0) return { found: 'sound', ...found };
  const fault = wrong.map((name) => `${name} is ${JSON.stringify(held[name])}`).join(', ');
  return { found: 'fault', fault, ...(wrong.join() === 'left' ? { others: found } : {}) };
}

function isSound(name: Field, text: string | null): boolean {
  return name === 'state' ? isSegmentState(text) : /^\d+$/.test(String(text));
}
