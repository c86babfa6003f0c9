/** The sales of a shop as a scan of the reconciler sees them, in Postgres, in the backend, and as sync knows them. */
import type {
  ExpectedSale,
  LogHead,
  LogPosition,
  LogRead,
  SaleVersion,
} from '../../../src/engine/contract.ts';
import { rulesOf } from '../../../src/engine/sale/rules.ts';
import type { ComparedSale } from '../../../src/sales/sales-at-work.ts';
import { SaleLog } from '../../../src/sync/apply/sale-log.ts';
import type { HeldSales } from '../../../src/sync/held/held-sales.ts';
import type { SyncStores } from '../../../src/sync/held/sync-stores.ts';

export interface ScannedSale {
  readonly row: ComparedSale;
  /** What sync knows of the logs; missing: it does not work on the sale. */
  log?: SaleLog | undefined;
  isFinished: boolean;
  version: SaleVersion | undefined;
  /** The segments in the backend. */
  heads: (LogHead | undefined)[];
  /** The cursors in Postgres. */
  cursors: LogPosition[];
}

const RULES = { startsAt: 0, endsAt: undefined, requireToken: false, perBuyerLimit: 1 };
/** The rules of all these sales. */
export const R1 = rulesOf(RULES);

/** The log of a segment after so many entries, each of one order. */
export function headAt(seq: number, change: Partial<LogHead> = {}): LogHead {
  return { seq, tail: `tail-${seq}`, orders: seq, committed: seq, state: 'open', rules: R1, ...change };
}

interface SaleSpec extends Partial<Omit<ComparedSale, 'id' | 'rules'>> {
  readonly held?: boolean;
  readonly segments?: number;
  /** Entries in each log, all of them applied. */
  readonly seq?: number;
}

export class ScannedShop {
  readonly sales = new Map<string, ScannedSale>();
  /**
   * What Postgres was asked for: for sales that are not closed (`undefined`), for closed ones among these, and for those after this
   * one.
   */
  readonly queried: unknown[] = [];
  /** The arguments of the calls of the backend. */
  readonly matched: string[][] = [];
  readonly read: (readonly LogPosition[])[] = [];
  readonly asked: (readonly string[])[] = [];
  /** Runs while the backend is asked whether sales match, or for heads of logs. */
  meanwhile = () => {};

  /** A sale that is in the backend as in Postgres. */
  add(id: string, spec: SaleSpec = {}): ScannedSale {
    const { held = false, segments = 1, seq = 0, ...change } = spec;
    const row: ComparedSale = { id, generation: 1, state: 'open', rules: R1, isArchived: false, ...change };
    const { generation, state, rules } = row;
    const tail = `tail-${seq}`;
    const cursors = Array.from({ length: segments }, (_, segment) => ({
      saleId: id,
      segment,
      generation,
      seq,
      tail,
    }));
    const log = new SaleLog(
      id,
      cursors.map((cursor) => ({ ...cursor, orders: seq, units: seq })),
    );
    const sale: ScannedSale = {
      row,
      log: held ? log : undefined,
      isFinished: false,
      version: { epoch: 1, generation, state, rules },
      heads: cursors.map(() => headAt(seq, { state, rules })),
      cursors,
    };
    this.sales.set(id, sale);
    return sale;
  }

  get held(): HeldSales {
    const sales = this.sales;
    const held = {
      get logs() {
        return [...sales.values()].flatMap(({ log }) => log ?? []);
      },
      held: (id: string) => sales.get(id)?.log,
      isFinished: (id: string) => sales.get(id)!.isFinished,
    };
    return held as unknown as HeldSales;
  }

  get stores(): SyncStores {
    const backend = {
      sales: {
        matches: async (expected: readonly ExpectedSale[]) => {
          this.matched.push(expected.map(({ saleId }) => saleId));
          const matches = expected.map((one) => this.#matches(one));
          this.meanwhile();
          return matches;
        },
        versions: async (ids: readonly string[]) => {
          this.asked.push(ids);
          return ids.map((id) => this.sales.get(id)!.version);
        },
      },
      log: {
        readLog: async (positions: readonly LogPosition[]) => {
          this.read.push(positions);
          const reads = positions.map((position): LogRead => {
            return { position, head: this.sales.get(position.saleId)!.heads[position.segment], entries: [] };
          });
          this.meanwhile();
          return reads;
        },
      },
    };
    const db = { raw: async (sql: string, values: unknown[]) => ({ rows: this.#query(sql, values) }) };
    return { backend, db } as unknown as SyncStores;
  }

  #query(sql: string, [first, limit]: unknown[]): unknown[] {
    if (sql.includes('segment_cursors'))
      return (first as string[]).flatMap((id) =>
        this.sales.get(id)!.cursors.map(({ seq, ...cursor }) => ({ sale_id: id, position: seq, ...cursor })),
      );
    const all = [...this.sales.values()].map(({ row }) => row);
    const open = all.filter(({ state }) => state !== 'closed');
    const sum = open.length === 0 ? null : JSON.stringify(open);
    if (sql.startsWith('SELECT sum(')) return [{ sum }];
    this.queried.push(first);
    if (limit !== undefined)
      return all
        .filter(({ id }) => id > (first as string))
        .slice(0, limit as number)
        .map(rawOf);
    if (first === undefined) return open.map((row) => ({ ...rawOf(row), sum }));
    return all.filter(({ id, state }) => state === 'closed' && (first as string[]).includes(id)).map(rawOf);
  }

  #matches({ saleId, generation, state, rules, newest }: ExpectedSale): boolean {
    const { version, heads } = this.sales.get(saleId)!;
    const isAsExpected = (seen: { state: string; rules?: string } | undefined) =>
      seen?.state === state && seen.rules === rules;
    return (
      version?.generation === generation &&
      isAsExpected(version) &&
      heads.length === newest.length &&
      heads.every((head, i) => {
        const { seq, tail } = newest[i]!;
        return isAsExpected(head) && head?.seq === seq && head.tail === tail && head.committed >= seq;
      })
    );
  }
}

function rawOf({ isArchived, ...row }: ComparedSale) {
  return {
    ...row,
    starts_at: new Date(RULES.startsAt),
    ends_at: null,
    require_token: RULES.requireToken,
    per_buyer_limit: RULES.perBuyerLimit,
    queue: 'off',
    archived_at: isArchived ? new Date(0) : null,
  };
}
