/** Both stores as they are at this instant, read as nobody in the simulation can: at once, unseen, between two events. */
import { KEY_PREFIX } from './sim-node.ts';
import type { World } from './world.ts';

export const SALE_ID = 's';

/** A row of the ledger, as the simulation's operators know it again. */
export interface LedgerRow {
  readonly reason: string;
  readonly action: string;
  readonly units: number;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** As Postgres has it. */
export interface Truth {
  readonly initial: number;
  readonly moved: number;
  readonly stock: number;
  readonly generation: number;
  readonly segments: number;
  readonly state: string;
  readonly requireToken: boolean;
  readonly limit: number;
  readonly orders: readonly {
    id: string;
    buyer: string;
    units: number;
    status: string;
    key: string | null;
    retakenBy: string | null;
    /** What was done to it (order-watch.ts), separated by spaces. */
    marks: string;
  }[];
  readonly cursors: readonly { segment: number; generation: number; units: number; position: number }[];
  readonly pendingReturns: number;
  readonly openMovements: number;
  /** In the order of the changes. */
  readonly ledger: readonly LedgerRow[];
  /** The ids of those that are known to be lost. */
  readonly lostOrders: readonly string[];
}

/** `undefined`: there is no sale yet. Not while a transaction is open. */
export function readTruth(world: World): Truth | undefined {
  return world.sql<Truth>('EXECUTE truth');
}

export interface SegmentBooks {
  readonly generation: number;
  readonly state: string;
  readonly left: number;
  readonly taken: number;
  readonly supplied: number;
  /** Units that have left it and are in no other segment. */
  readonly inTransit: number;
}

export interface SaleBooks {
  /** Of the record; 0: there is none. */
  readonly generation: number;
  readonly epoch: number;
  readonly state: string | undefined;
  /** By segment, those of the number that Postgres says. */
  readonly segments: readonly (SegmentBooks | undefined)[];
}

const PUBLISHED = new Set(['open', 'paused', 'closed']);

export function isPublished(segment: SegmentBooks | undefined, generation: number): segment is SegmentBooks {
  return segment?.generation === generation && PUBLISHED.has(segment.state);
}

export function readBooks({ redis }: World, segments: number): SaleBooks {
  const hash = (key: string) => {
    for (const server of redis) {
      const value = server.redis.data.get(key);
      if (value?.type === 'hash') return value.fields;
    }
    return undefined;
  };
  const record = hash(`${KEY_PREFIX}{${SALE_ID}}:sale`);
  const fields = Array.from({ length: segments }, (_, i) => hash(`${KEY_PREFIX}{${SALE_ID}:${i}}:segment`));
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
          inTransit: inTransit(of.get('out'), donor, fields),
        },
    ),
  };
}

/** The record of an open transfer is "seq receiver units"; the receiver knows the last one that has arrived. */
function inTransit(
  out: string | undefined,
  donor: number,
  fields: readonly (ReadonlyMap<string, string> | undefined)[],
): number {
  if (!out) return 0;
  const [seq, receiver, units] = out.split(' ').map(Number) as [number, number, number];
  return Number(fields[receiver]?.get(`from:${donor}`) ?? 0) >= seq ? 0 : units;
}
