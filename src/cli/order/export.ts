import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { stat, truncate } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { Option } from 'commander';
import { InvalidInput, StockadeError } from '../../engine/errors.ts';
import { rest } from '../../lib/rest.ts';
import { type ExportPiece, exportOrders } from '../../operations/order-export.ts';
import type { OrderPage, OrderQuery } from '../../operations/order-list.ts';
import type { OrderOperations } from '../../operations/order-operations.ts';
import { type ExportFormat, type OrderExport, parseOrderExport } from '../../operations/order-query.ts';
import type { SaleOperations } from '../../operations/sale-operations.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { namingFlags } from '../command/flags.ts';
import { mayPass } from '../command/may-pass.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK, UsageError } from '../terminal/explain.ts';
import { needWholeOutput, note, plural, printJson } from '../terminal/output.ts';
import { NO_PROGRESS, progressBar } from '../terminal/progress.ts';
import { orAborted, watchSignals } from '../terminal/signals.ts';
import { formatOf, refuseNoFile, refuseOther } from './export-file.ts';
import { FILTER_OPTIONS, FILTERS, given } from './list.ts';

/** How often a page that can't be read is requested again. */
const RETRIES = 10;
/** Pause before each of these requests. */
const PAUSE_MS = 1_000;

export const exportCommand: CommandSpec = {
  name: 'export <sale>',
  summary: 'write all orders of a sale, the oldest first, as CSV or NDJSON',
  details:
    'The output is complete if the exit code is 0; NDJSON then ends with {"end":true,"orders":n}. If the node or a store ' +
    'stops answering, the export waits and continues after the last order that it wrote. Ctrl-C ends it after whole lines, ' +
    'and the command says how to continue. In CSV, an apostrophe is put before a text that a spreadsheet would take for a ' +
    'formula.',
  options: [
    new Option(
      '--format <format>',
      'csv or ndjson (default: csv for a file whose name ends so, otherwise ndjson)',
    ),
    new Option(
      '--output <file>',
      'write to this file, which is new unless the export is continued (default: stdout)',
    ),
    ...FILTER_OPTIONS,
    new Option(
      '--after <id>',
      'continue after this order: the output is appended to the file, and a CSV has no header line',
    ),
  ],
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: [
    'stockade order export tickets --format csv --output tickets.csv',
    'stockade order export tickets --status paid,redeemed --since 2026-11-27T00:00:00Z > paid.ndjson',
  ],
  async run({ config, log, json, args, options }) {
    const { output } = options as { output?: string };
    const { format, ...wanted } = await namingFlags('the export', exportCommand, () =>
      parseOrderExport({
        ...given(options, [...FILTERS, 'after']),
        format: options.format ?? formatOf(output),
      }),
    );
    if (json && output === undefined)
      throw new UsageError('--json needs --output: otherwise the orders would be on stdout too');
    const done = await withOperations({ config, log }, ({ sales, orders }) =>
      exportTo(output, sales, orders, { saleId: args[0]!, wanted, format }),
    );
    if (json) printJson({ ...done, output });
    else
      note(`${plural(done.orders, 'order')} of ${done.saleId}${output === undefined ? '' : ` in ${output}`}`);
    return EXIT_OK;
  },
};

interface Wanted {
  readonly saleId: string;
  readonly wanted: Omit<OrderExport, 'format'>;
  readonly format: ExportFormat;
}

/** Until the end or a signal. If it fails, what is written can be continued, and it says how. */
async function exportTo(
  output: string | undefined,
  sales: Pick<SaleOperations, 'show'>,
  orders: OrderOperations,
  what: Wanted,
): Promise<{ saleId: string; orders: number; last?: string }> {
  const { saleId, wanted } = what;
  const { committedOrders } = await sales.show(saleId);
  const out = await openOutput(output, what);
  const begin = output === undefined ? 0 : (await stat(output)).size;
  const interruption = watchSignals();
  let [last, written, end] = [wanted.after, 0, begin];
  try {
    for await (const piece of writeOrders(orders, { ...what, committedOrders }, out, interruption.signal)) {
      written += piece.orders;
      last = piece.last;
      end += Buffer.byteLength(piece.text);
    }
    if (output !== undefined) await finished(out.end());
  } catch (error) {
    // The export is continued after whole pieces, so the file may not have a part of the next one. It may have no names of
    // columns without an order: the next attempt begins with them.
    const isWhole = output === undefined || (await cutOff(output, written === 0 ? begin : end));
    if (isWhole && last !== undefined && !(error instanceof SaleReplaced))
      note(`Not complete: ${plural(written, 'order')} written; to continue: --after ${last}`);
    throw error;
  } finally {
    interruption.release();
  }
  return { saleId, orders: written, ...(last !== undefined && { last }) };
}

export interface WantedExport extends Wanted {
  /** About how many orders there are, for the progress bar. */
  readonly committedOrders: number;
}

const NEVER = new AbortController().signal;

/**
 * Writes the orders and shows a progress bar, unless they go to the terminal.
 * @param signal ends it with its reason, between two pieces
 * @returns each piece, after it was written
 */
export async function* writeOrders(
  orders: OrderOperations,
  { saleId, committedOrders, wanted, format }: WantedExport,
  out: Writable,
  signal: AbortSignal = NEVER,
): AsyncGenerator<ExportPiece> {
  // On the terminal to which the orders go, the bar would be drawn among them.
  const isAmongOrders = out === process.stdout && process.stdout.isTTY;
  const bar = isAmongOrders ? NO_PROGRESS : progressBar(committedOrders, 'orders');
  let written = 0;
  // The write that fails says so.
  out.on('error', () => {});
  try {
    for await (const piece of exportOrders(patient(orders, saleId, wanted.after, signal), wanted, format)) {
      await write(out, piece.text);
      written += piece.orders;
      bar.update(written, Math.max(committedOrders, written));
      yield piece;
    }
  } finally {
    bar.stop();
  }
}

/** Resolves when the text is written, and not only kept in memory: the disk may be full. */
function write(out: Writable, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    out.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

/** @returns whether the file has no more than this number of bytes now */
async function cutOff(file: string, end: number): Promise<boolean> {
  try {
    const found = await stat(file);
    if (found.isFile() && found.size > end) await truncate(file, end);
    return true;
  } catch {
    return false;
  }
}

async function openOutput(
  file: string | undefined,
  { saleId, format, wanted: { after } }: Wanted,
): Promise<Writable> {
  if (file === undefined) {
    needWholeOutput();
    return process.stdout;
  }
  await refuseNoFile(file);
  await refuseOther(file, saleId, format, after);
  const stream = createWriteStream(file, { flags: after === undefined ? 'w' : 'a' });
  await once(stream, 'open');
  return stream;
}

class SaleReplaced extends StockadeError {
  constructor(saleId: string) {
    super(
      'sale_replaced',
      `sale ${saleId} was deleted while its orders were read, and another sale has its id: the export is not complete`,
    );
  }
}

/** Reads pages, and asks again for one that can't be read now. @param first the order before the first page */
function patient(
  orders: OrderOperations,
  saleId: string,
  first: string | undefined,
  signal: AbortSignal,
): (query: OrderQuery) => Promise<OrderPage> {
  return async (query) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await orAborted(orders.listOrders(saleId, query), signal);
      } catch (error) {
        // A page was read before, so the command line is not wrong.
        if (error instanceof InvalidInput && query.after !== first) throw new SaleReplaced(saleId);
        if (!mayPass(error) || attempt > RETRIES) throw error;
        await rest(PAUSE_MS, signal);
      }
    }
  };
}
