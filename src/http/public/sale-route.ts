/** `GET /v1/sales/{saleId}`: the public facts about a sale. */
import { LRUCache } from 'lru-cache';
import type { SaleRecord } from '../../engine/contract.ts';
import { isBusy, StockadeError } from '../../engine/errors.ts';
import { SALE_ID_PATTERN } from '../../engine/limits.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { Handler, Observer } from '../server/exchange.ts';
import { json, problem } from '../server/problem.ts';

export interface SaleHost extends Observer {
  readSale(saleId: string): Promise<PublicSale | undefined>;
  readonly readDeadlineMs: number;
}

export interface PublicSale {
  readonly record: SaleRecord;
  /** `undefined` while the backend can't tell. */
  readonly remaining: number | undefined;
}

/** How old the counter in an answer may be. Buyers read it more often than they buy. */
const REMAINING_TTL_MS = 200;
const CACHED_SALES = 1_000;
const UNREADABLE = problem('unavailable', { detail: 'The sale can’t be read now. Send the request again.' });
const BUSY = problem('busy', { detail: 'The sale was not read. Send the request again.' });

export function saleRoute(host: SaleHost): Handler {
  const cache = new LRUCache<string, { found: PublicSale | undefined }>({
    max: CACHED_SALES,
    ttl: REMAINING_TTL_MS,
    // A lookup whose entry leaves the full cache still answers the requests that wait for it.
    ignoreFetchAbort: true,
    fetchMethod: async (saleId) => ({ found: await host.readSale(saleId) }),
  });
  return async (exchange, request) => {
    const saleId = request.getParameter(0) ?? '';
    if (!SALE_ID_PATTERN.test(saleId)) return exchange.reply(problem('unknown_sale'));
    try {
      const sale = (await withTimeout(host.readDeadlineMs, cache.fetch(saleId)))?.found;
      exchange.reply(sale ? json(200, publicJson(sale)) : problem('unknown_sale'));
    } catch (error) {
      if (!(error instanceof StockadeError)) host.fault(error);
      exchange.reply(isBusy(error) ? BUSY : UNREADABLE);
    }
  };
}

function publicJson({ record, remaining }: PublicSale) {
  const { sale } = record;
  return {
    id: sale.id,
    title: sale.title,
    state: phase(record),
    startsAt: new Date(sale.startsAt).toISOString(),
    endsAt: sale.endsAt === undefined ? undefined : new Date(sale.endsAt).toISOString(),
    perBuyerLimit: sale.perBuyerLimit,
    requireToken: sale.requireToken || undefined,
    priceMinor: sale.priceMinor,
    faceValueMinor: sale.faceValueMinor,
    currency: sale.currency,
    soldOut: remaining === undefined ? undefined : remaining === 0,
    remaining,
  };
}

function phase({ sale, state }: SaleRecord): 'scheduled' | 'open' | 'paused' | 'ended' {
  const now = Date.now();
  if (state === 'closed' || (sale.endsAt !== undefined && now >= sale.endsAt)) return 'ended';
  if (now < sale.startsAt) return 'scheduled';
  return state;
}
