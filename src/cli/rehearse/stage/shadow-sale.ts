/**
 * The sale of a rehearsal, and its end. It is an ordinary sale with an id of its own kind (engine/sale/rehearsal.ts).
 *
 *   none -> open -> closed -> archived -> being deleted -> deleted
 *
 * Its metadata say which process rehearses and until when at most. If that process is killed, the sale stays in the state that it
 * had; the next rehearsal finds it by its id, sees that its process has ended, and goes on from there. Each step may be made twice.
 */
import { readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { StockadeError } from '../../../engine/errors.ts';
import type { Author } from '../../../engine/sale/author.ts';
import { isRehearsal } from '../../../engine/sale/rehearsal.ts';
import { otherProcessRuns } from '../../../node/process/other-process.ts';
import { OrdersDiffer } from '../../../operations/delete-operations.ts';
import { MAX_PAGE_SALES, salePages } from '../../../operations/sale-list.ts';
import type { SaleOperations, SaleStatus } from '../../../operations/sale-operations.ts';
import { UnknownSale } from '../../../operations/sale-operations.ts';
import type { Plan } from '../crowd/plan.ts';

const BY: Author = { actor: 'rehearse', reason: 'rehearsal' };
/** A rehearsal lasts no longer than its crowd and this: then its sale may be removed by others. */
const AROUND_CROWD_MS = 600_000;
const REMOVE_LIMIT_MS = 120_000;
const POLL_MS = 100;
/** Sync is still writing orders, or another process works on the sale. */
const PASSING = ['unavailable', 'stale_generation', 'not_executed', 'outcome_unknown', 'busy'];

type Sales = Pick<SaleOperations, 'create' | 'list' | 'show' | 'change' | 'delete' | 'deletion'>;

export async function openShadowSale(
  sales: Sales,
  id: string,
  { stock, segments, seconds }: Plan,
): Promise<void> {
  const until = new Date(Date.now() + seconds * 1_000 + AROUND_CROWD_MS).toISOString();
  const metadata = { host: whereProcessesRun(), pid: process.pid, until };
  await sales.create({ id, title: 'Rehearsal', stock, segments, perBuyerLimit: 1, metadata }, BY.actor);
}

export interface OtherSales {
  /** Of the shop, open now. */
  readonly open: readonly string[];
  /** Of rehearsals whose process has ended. */
  readonly left: readonly string[];
  /** Of rehearsals that are under way. */
  readonly rehearsing: readonly string[];
}

export async function otherSales(sales: Sales): Promise<OtherSales> {
  const found: SaleStatus[] = [];
  const list = (query: Parameters<Sales['list']>[0]) => sales.list(query);
  for await (const page of salePages(list, { archived: 'include', limit: MAX_PAGE_SALES }))
    found.push(...page.sales);
  const rehearsals = found.filter(({ id }) => isRehearsal(id));
  const ids = (some: readonly SaleStatus[]) => some.map(({ id }) => id);
  return {
    open: ids(found.filter(({ id, state }) => state === 'open' && !isRehearsal(id))),
    left: ids(rehearsals.filter((sale) => hasEnded(sale))),
    rehearsing: ids(rehearsals.filter((sale) => !hasEnded(sale))),
  };
}

function hasEnded({ metadata }: SaleStatus, now = Date.now()): boolean {
  const { host, pid, until } = metadata as { host?: unknown; pid?: unknown; until?: unknown };
  if (!(now < Date.parse(String(until)))) return true;
  // A process that has this one's id is not this one, but one in another container.
  return (
    host === whereProcessesRun() && typeof pid === 'number' && pid !== process.pid && !otherProcessRuns(pid)
  );
}

/** Ids of processes can be compared only here: containers may share a name, and each numbers its processes by itself. */
function whereProcessesRun(): string {
  try {
    return `${hostname()} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    // Not Linux: there are no such containers.
    return hostname();
  }
}

/**
 * Closes, archives and deletes the sale with all its orders, from whatever state it is in, and waits until it is deleted.
 * @throws StockadeError `not_removed` after REMOVE_LIMIT_MS, with the reason; the errors of the operations
 */
export async function removeShadowSale(sales: Sales, saleId: string): Promise<void> {
  const deadline = performance.now() + REMOVE_LIMIT_MS;
  let orders = 0;
  let why: unknown;
  while (performance.now() < deadline) {
    try {
      if ((await sales.deletion(saleId)).state === 'deleted') return;
      if ((await sales.deletion(saleId)).state === 'none') {
        const { state, archivedAt } = await sales.show(saleId);
        if (state !== 'closed') await sales.change(saleId, { action: 'close' }, BY);
        if (archivedAt === undefined) await sales.change(saleId, { action: 'archive' }, BY);
        await sales.delete(saleId, orders, BY);
      }
    } catch (error) {
      if (error instanceof UnknownSale && (await sales.deletion(saleId)).state === 'none') return;
      if (error instanceof OrdersDiffer) orders = error.orders;
      else if (!isPassing(error)) throw error;
      why = error;
    }
    await delay(POLL_MS);
  }
  throw new StockadeError(
    'not_removed',
    `the sale ${saleId} of the rehearsal could not be removed in ${REMOVE_LIMIT_MS / 1_000} s`,
    {
      cause: why,
    },
  );
}

/** Whether the same operation may succeed later. */
export const isPassing = (error: unknown) => error instanceof StockadeError && PASSING.includes(error.code);
