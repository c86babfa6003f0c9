import { rm } from 'node:fs/promises';
import { Option } from 'commander';
import { StockadeError } from '../../engine/errors.ts';
import type { Author } from '../../engine/sale/author.ts';
import { rest } from '../../lib/rest.ts';
import { type DeleteOperations, type Deletion, OrdersDiffer } from '../../operations/delete-operations.ts';
import type { OrderOperations } from '../../operations/order-operations.ts';
import {
  type SaleOperations,
  type SaleStatus,
  UnknownSale,
  WrongState,
} from '../../operations/sale-operations.ts';
import { AUTHOR_OPTIONS, authorOf } from '../command/author.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { confirmation, YES_OPTION } from '../command/confirm.ts';
import { mayPass } from '../command/may-pass.ts';
import { withOperations } from '../command/open-operations.ts';
import { writeOrders } from '../order/export.ts';
import { formatOf } from '../order/export-file.ts';
import { EXIT_OK, UsageError } from '../terminal/explain.ts';
import { note, number, plural, print, printJson } from '../terminal/output.ts';
import { progressBar } from '../terminal/progress.ts';
import { orAborted, watchSignals } from '../terminal/signals.ts';
import { writeWhole } from './whole-file.ts';

const LOOK_MS = 200;
/** The command stops waiting if no further order is deleted for this time. */
const STALLED_MS = 60_000;

export const deleteSale: CommandSpec = {
  name: 'delete <sale>',
  summary: 'delete an archived sale for good, with its ledger and its orders',
  details:
    'A sale that has orders is deleted only with both --with-orders and --export: all its orders are written to that file ' +
    'first, as by `stockade order export` in NDJSON, and only orders in that file are deleted. So its name may not end in .csv. ' +
    'Nothing is written if the deletion would be refused. A file that exists is never changed: it must have exactly these ' +
    'orders already, as after an attempt that failed. ' +
    'If the command is interrupted while orders are being deleted, nodes go on; the same command shows how far they are.',
  options: [
    new Option('--with-orders', 'delete its orders too'),
    new Option('--export <file>', 'write its orders to this new file first'),
    ...AUTHOR_OPTIONS,
    YES_OPTION,
  ],
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: [
    'stockade sale delete tickets --reason "typing error"',
    'stockade sale delete tickets --with-orders --export tickets.ndjson \\',
    '  --reason "ten years are over"',
  ],
  async run({ config, log, json, args, options }) {
    const saleId = args[0]!;
    const { withOrders, export: file } = options as { withOrders?: true; export?: string };
    if (withOrders !== (file === undefined ? undefined : true)) {
      throw new UsageError(
        '--with-orders and --export belong together: orders are deleted after they were exported',
      );
    }
    if (formatOf(file) !== 'ndjson') {
      throw new UsageError(
        `--export writes NDJSON, and ${file} would be taken for CSV: name it .ndjson; \`stockade order export\` writes CSV`,
      );
    }
    const author = authorOf(options);
    const confirm = confirmation(`delete ${saleId}`, options, { saysSo: withOrders });
    const { deleted, kept } = await withOperations({ config, log }, async ({ sales, orders }) => {
      const isDeleting = (await sales.deletion(saleId)).state === 'deleting';
      try {
        // While a sale is being deleted, nobody can read its orders. The command that began the deletion has exported them.
        const kept = isDeleting ? undefined : file;
        if (!isDeleting) {
          const found = await ordersToDelete(sales, saleId, author);
          if (file === undefined && found > 0) throw new OrdersDiffer(saleId, found, 0);
          await confirm(async () => told(await sales.show(saleId), found, file));
        }
        if (kept !== file) note(`${saleId} is being deleted already: nothing is written to ${file}`);
        const interruption = watchSignals();
        const { signal } = interruption;
        try {
          const exported = kept === undefined ? NOTHING : await exportTo(kept, sales, orders, saleId, signal);
          const begun = await begin({ sales, saleId, exported, file: kept, author }, signal);
          return { deleted: await follow(sales, begun, signal), kept };
        } finally {
          interruption.release();
        }
      } catch (error) {
        if (!isDeleting || !(error instanceof UnknownSale)) throw error;
        const now = await sales.deletion(saleId);
        if (now.state !== 'deleted') throw error;
        // It has ended just now.
        return { deleted: now, kept: undefined };
      }
    });
    if (json) printJson({ ...deleted, ...(kept !== undefined && { export: kept }) });
    else print(deletedText(deleted, kept));
    return EXIT_OK;
  },
};

const NOTHING = { orders: 0, isNew: false };

/** What will happen. @param orders of the sale, those that are not live too */
export function told(
  { archivedAt, title, committedOrders, waitingErasures = 0 }: SaleStatus,
  orders: number,
  file: string | undefined,
): string[] {
  const sale = title === '' ? 'The sale' : `The sale ${JSON.stringify(title)}`;
  return [
    `${sale} and its ledger leave Postgres. It was archived at ${archivedAt}.`,
    orders === 0
      ? 'It has no orders.'
      : `${plural(orders, 'order')} ${orders === 1 ? 'is deleted after it was' : 'are deleted after they were'} written to ${file}: ` +
        `${number(committedOrders)} live, ${number(orders - committedOrders)} cancelled, expired, refunded or rejected.`,
    ...(orders > 0 && waitingErasures > 0
      ? [`Still to be erased: ${plural(waitingErasures, 'buyer')}. The file has the ids, not pseudonyms.`]
      : []),
  ];
}

/** As many digits as a request may have: more orders than any sale has. */
const TOO_MANY_ORDERS = 999_999_999_999_999;

/**
 * What else would refuse the deletion is found out before anybody is asked, and before an export that may take an hour: the sale may
 * not be archived, or the role in Postgres may lack the right. A deletion that names another number of orders is refused last, and
 * changes nothing.
 * @returns how many orders the sale has
 * @throws as `DeleteOperations.delete`, except OrdersDiffer
 */
async function ordersToDelete(sales: DeleteOperations, saleId: string, author: Author): Promise<number> {
  try {
    await sales.delete(saleId, TOO_MANY_ORDERS, author);
    // Another command has begun to delete it just now. What follows finds that out.
    return 0;
  } catch (error) {
    if (error instanceof OrdersDiffer) return error.orders;
    throw error;
  }
}

/** Writes all orders to a file. @throws WrongState unless the sale is archived; the reason of the signal; as `writeWhole` */
async function exportTo(
  file: string,
  sales: SaleOperations,
  orders: OrderOperations,
  saleId: string,
  signal: AbortSignal,
): Promise<{ orders: number; isNew: boolean }> {
  const { state, archivedAt, committedOrders } = await sales.show(saleId);
  if (archivedAt === undefined) throw new WrongState(saleId, state, 'deleted: archive it first');
  let written = 0;
  const all = { saleId, committedOrders, wanted: {}, format: 'ndjson' } as const;
  try {
    const { isNew } = await writeWhole(file, async (out) => {
      for await (const piece of writeOrders(orders, all, out, signal)) written += piece.orders;
    });
    return { orders: written, isNew };
  } catch (error) {
    if (signal.aborted) note(`Nothing was deleted, and ${file} was not written.`);
    throw error;
  }
}

interface Begin {
  readonly sales: DeleteOperations;
  readonly saleId: string;
  readonly exported: { readonly orders: number; readonly isNew: boolean };
  /** The file with the orders. */
  readonly file: string | undefined;
  readonly author: Author;
}

/** Begins the deletion. If it is refused because the export is not that of the sale now, the next attempt needs another one. */
async function begin(
  { sales, saleId, exported, file, author }: Begin,
  signal: AbortSignal,
): Promise<Deletion> {
  try {
    signal.throwIfAborted();
    return await orAborted(sales.delete(saleId, exported.orders, author), signal);
  } catch (error) {
    if (file === undefined || !exported.isNew) throw error;
    if (error instanceof OrdersDiffer) await rm(file, { force: true });
    // The deletion may have begun.
    else note(`The orders are in ${file}: the same command can be repeated.`);
    throw error;
  }
}

type Deleted = Extract<Deletion, { state: 'deleted' }>;

/** Shows the progress until the sale is deleted. @throws StockadeError `not_deleted` if there is none; the reason of the signal */
async function follow(operations: DeleteOperations, begun: Deletion, signal: AbortSignal): Promise<Deleted> {
  if (begun.state === 'none') throw new Error(`the deletion of ${begun.saleId} is not recorded`);
  const bar = progressBar(begun.orders, 'orders deleted');
  let changedAtMs = performance.now();
  let problem: unknown;
  try {
    for (let now: Deletion = begun, done = -1; ; ) {
      if (now.state === 'deleted') return now;
      if (now.state === 'deleting' && now.done !== done) {
        done = now.done;
        changedAtMs = performance.now();
        bar.update(done);
      }
      if (performance.now() - changedAtMs > STALLED_MS)
        throw notDeleted(begun.saleId, done, begun.orders, problem);
      await rest(LOOK_MS, signal);
      if (signal.aborted) {
        note(`${number(done)} of ${plural(begun.orders, 'order')} are deleted. ${GOES_ON}.`);
        throw signal.reason;
      }
      try {
        now = await orAborted(operations.deletion(begun.saleId), signal);
        problem = undefined;
      } catch (error) {
        if (!mayPass(error) && error !== signal.reason) throw error;
        problem = error;
      }
    }
  } finally {
    bar.stop();
  }
}

const GOES_ON = 'Nodes continue the deletion: repeat the command to see how far it is';

const notDeleted = (saleId: string, done: number, orders: number, cause: unknown) =>
  new StockadeError(
    'not_deleted',
    `${number(done)} of ${number(orders)} orders of ${saleId} are deleted, and none in the last ${STALLED_MS / 1_000} s. ` +
      GOES_ON,
    { cause },
  );

function deletedText({ saleId, orders }: Deleted, file: string | undefined): string {
  const where = file === undefined ? '' : `, kept in ${file}`;
  return orders === 0
    ? `${saleId} is deleted.`
    : `${saleId} is deleted with ${plural(orders, 'order')}${where}.`;
}
