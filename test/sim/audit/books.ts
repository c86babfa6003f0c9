/** Reads both stores as they are between two events: at once, and without a trace in the simulation. */
import { KEY_PREFIX } from '../machines/sim-node.ts';
import type { World } from '../machines/world.ts';

/** A row of the ledger. Operators of the simulation recognize their rows by the reason. */
export interface LedgerRow {
  readonly reason: string;
  readonly action: string;
  readonly units: number;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** The sale as Postgres has it. */
export interface Truth {
  readonly initial: number;
  readonly moved: number;
  readonly stock: number;
  readonly generation: number;
  readonly segments: number;
  readonly state: string;
  readonly requireToken: boolean;
  readonly limit: number;
  readonly isArchived: boolean;
  /** Whether its deletion was accepted. */
  readonly isDeleting: boolean;
  /** Erasures that were asked for and are not carried out yet. */
  readonly erasures: readonly { buyer: string; pseudonym: string; isDue: boolean }[];
  readonly orders: readonly {
    id: string;
    buyer: string;
    units: number;
    status: string;
    key: string | null;
    retakenBy: string | null;
    /** The changes made to the order (order-watch.ts), separated by spaces. */
    marks: string;
  }[];
  readonly cursors: readonly { segment: number; generation: number; units: number; position: number }[];
  readonly pendingReturns: number;
  readonly openMovements: number;
  /** In the order in which the changes were made. */
  readonly ledger: readonly LedgerRow[];
  /** The ids of orders that are reported as lost by name. */
  readonly lostOrders: readonly string[];
}

/** `undefined`: there is no sale yet. Must not be called while a transaction is open. */
export function readTruth(world: World, saleId: string): Truth | undefined {
  return world.sql<Truth>(`EXECUTE truth('${saleId}')`);
}

export interface SegmentBooks {
  readonly generation: number;
  readonly state: string;
  readonly left: number;
  readonly taken: number;
  readonly supplied: number;
  /** Units that were withdrawn from the segment. */
  readonly withdrawn: number;
  /** Units that have left the segment and have not arrived at another. */
  readonly inTransit: number;
  /** Whether the segment still has the record of its last transfer to another. */
  readonly isTransferOpen: boolean;
}

export interface SaleBooks {
  /** The generation in the sale's record; 0: there is no record. */
  readonly generation: number;
  readonly epoch: number;
  readonly state: string | undefined;
  /** By segment, for as many segments as Postgres says. */
  readonly segments: readonly (SegmentBooks | undefined)[];
}

const PUBLISHED = new Set(['open', 'paused', 'closed']);

export function isPublished(segment: SegmentBooks | undefined, generation: number): segment is SegmentBooks {
  return segment?.generation === generation && PUBLISHED.has(segment.state);
}

export function readBooks({ redis }: World, saleId: string, segments: number): SaleBooks {
  const hash = (key: string) => {
    for (const server of redis) {
      const value = server.redis.data.get(key);
      if (value?.type === 'hash') return value.fields;
    }
    return undefined;
  };
  const record = hash(`${KEY_PREFIX}{${saleId}}:sale`);
  const fields = Array.from({ length: segments }, (_, i) => hash(`${KEY_PREFIX}{${saleId}:${i}}:segment`));
  const number = (of: ReadonlyMap<string, string>, name: string) => Number(of.get(name) ?? 0);
  return {
    generation: record ? number(record, 'generation') : 0,
    epoch: record ? number(record, 'epoch') : 0,
    state: record?.get('state'),
    segments: fields.map(
      (of, donor) =>
        of && {
          generation: number(of, 'generation'),
          state: of.get('state') ?? '',
          left: number(of, 'left'),
          taken: number(of, 'taken'),
          supplied: number(of, 'supplied'),
          withdrawn: number(of, 'withdrawn'),
          isTransferOpen: of.has('out'),
          inTransit: inTransit(of.get('out'), donor, fields),
        },
    ),
  };
}

/** The record of an open transfer is "seq receiver units". The receiver remembers the last transfer that arrived. */
function inTransit(
  out: string | undefined,
  donor: number,
  fields: readonly (ReadonlyMap<string, string> | undefined)[],
): number {
  if (!out) return 0;
  const [seq, receiver, units] = out.split(' ').map(Number) as [number, number, number];
  return Number(fields[receiver]?.get(`from:${donor}`) ?? 0) >= seq ? 0 : units;
}
