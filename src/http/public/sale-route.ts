/** `GET /v1/sales/{saleId}`: the public facts about a sale. */
import { LRUCache } from 'lru-cache';
import type { SaleRecord } from '../../engine/contract.ts';
import { isBusy, StockadeError } from '../../engine/errors.ts';
import { SALE_ID_PATTERN } from '../../engine/limits.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { KeptReply } from '../server/conditional.ts';
import type { Handler, Observer } from '../server/exchange.ts';
import { problem } from '../server/problem.ts';

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
/** How long browsers and gateways may use an answer without asking. */
const CACHED_BY_OTHERS_MS = 1_000;
const CACHED_SALES = 1_000;
const UNREADABLE = problem('unavailable', { detail: 'The sale can’t be read now. Send the request again.' });
const BUSY = problem('busy', { detail: 'The sale was not read. Send the request again.' });

export function saleRoute(host: SaleHost): Handler {
  const cache = new LRUCache<string, Read>({
    max: CACHED_SALES,
    ttl: REMAINING_TTL_MS,
    // A lookup whose entry leaves the full cache still answers the requests that wait for it.
    ignoreFetchAbort: true,
    fetchMethod: async (saleId) => new Read(await host.readSale(saleId)),
  });
  return async (exchange, request) => {
    const saleId = request.getParameter(0) ?? '';
    const ifNoneMatch = request.getHeader('if-none-match');
    if (!SALE_ID_PATTERN.test(saleId)) return exchange.reply(problem('unknown_sale'));
    try {
      const read = await withTimeout(host.readDeadlineMs, cache.fetch(saleId));
      exchange.reply(read?.reply()?.to(ifNoneMatch) ?? problem('unknown_sale'));
    } catch (error) {
      if (!(error instanceof StockadeError)) host.fault(error);
      exchange.reply(isBusy(error) ? BUSY : UNREADABLE);
    }
  };
}

/** What was read about a sale, and the answer made of it: many buyers ask while it is kept. */
class Read {
  readonly #found: PublicSale | undefined;
  #answer: { readonly state: Phase; readonly cacheControl: string; readonly reply: KeptReply } | undefined;

  constructor(found: PublicSale | undefined) {
    this.#found = found;
  }

  /** @returns `undefined` if there is no such sale */
  reply(): KeptReply | undefined {
    if (!this.#found) return undefined;
    const now = Date.now();
    const state = phase(this.#found.record, now);
    const cacheControl = cacheControlOf(this.#found, now);
    if (this.#answer?.state !== state || this.#answer.cacheControl !== cacheControl) {
      const body = JSON.stringify(publicJson(this.#found, state));
      this.#answer = {
        ...{ state, cacheControl },
        reply: new KeptReply('application/json', body, {}, cacheControl),
      };
    }
    return this.#answer.reply;
  }
}

/** A cache may show the answer for a second, unless it is about to change or lacks something. It is the same for everybody. */
function cacheControlOf({ record: { sale }, remaining }: PublicSale, now: number): string {
  const changesSoon = [sale.startsAt, sale.endsAt].some(
    (at) => at !== undefined && at > now && at <= now + CACHED_BY_OTHERS_MS,
  );
  return `public, max-age=${changesSoon || remaining === undefined ? 0 : CACHED_BY_OTHERS_MS / 1_000}`;
}

function publicJson({ record, remaining }: PublicSale, state: Phase) {
  const { sale } = record;
  return {
    id: sale.id,
    title: sale.title,
    state,
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

type Phase = 'scheduled' | 'open' | 'paused' | 'ended';

function phase({ sale, state }: SaleRecord, now: number): Phase {
  if (state === 'closed' || (sale.endsAt !== undefined && now >= sale.endsAt)) return 'ended';
  if (now < sale.startsAt) return 'scheduled';
  return state;
}
