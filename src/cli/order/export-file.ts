/** Files that hold an export: their format, their ends, and whether an export may be written to them. */
import { open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ExportFormat } from '../../operations/order-query.ts';
import { UsageError } from '../terminal/explain.ts';

/** The end of a complete NDJSON. */
export const COMPLETE = /\{"end":true,"orders":\d+\}\n$/;

export function formatOf(file: string | undefined): ExportFormat {
  return file?.toLowerCase().endsWith('.csv') ? 'csv' : 'ndjson';
}

/** @throws UsageError if the path is a folder, or its folder does not exist */
export async function refuseNoFile(file: string): Promise<void> {
  const kindOf = (path: string) => stat(path).catch(() => undefined);
  if ((await kindOf(file))?.isDirectory()) throw new UsageError(`${file} is a folder: name a file in it`);
  const folder = dirname(file);
  if (!(await kindOf(folder))?.isDirectory())
    throw new UsageError(`there is no folder ${folder} for ${file}: make it, or correct the path`);
}

/** No line of an export is longer: an order has 4,096 bytes of metadata at most, and CSV may double some of them. */
const LINE_BYTES = 65_536;

/**
 * Refuses to change a file that is not the beginning of this export. A file that is no regular one, such as a pipe, is not looked at.
 * @param saleId the sale that is exported
 * @param after the order to continue after; `undefined`: the export begins
 * @throws UsageError
 */
export async function refuseOther(
  file: string,
  saleId: string,
  format: ExportFormat,
  after: string | undefined,
): Promise<void> {
  const found = await stat(file).catch(() => undefined);
  if (!found?.isFile() || found.size === 0) return;
  if (after === undefined)
    throw new UsageError(
      `${file} exists: name a new file, or remove it. To continue an export, name the order of its last line as --after`,
    );
  const last = await lastLineOf(file, found.size);
  if (last === undefined)
    throw new UsageError(
      `${file} ends within a line: remove that line, and name the order of the line before it as --after`,
    );
  if (COMPLETE.test(`${last}\n`)) throw new UsageError(`${file} is complete: there is nothing to continue`);
  const isNdjson = last.startsWith('{');
  if (isNdjson !== (format === 'ndjson'))
    throw new UsageError(
      `${file} is ${isNdjson ? 'NDJSON' : 'CSV'}: continue it with --format ${isNdjson ? 'ndjson' : 'csv'}`,
    );
  // A CSV may have an apostrophe before an id that a spreadsheet would take for a formula.
  const [, orderId, otherId] =
    (isNdjson ? /"orderId":"(\d+)","saleId":"([^"]+)"/ : /^(\d+),'?([^,]+),/).exec(last) ?? [];
  if (otherId !== undefined && otherId !== saleId)
    throw new UsageError(`${file} has orders of sale ${otherId}: export ${saleId} to another file`);
  if (orderId !== undefined && orderId !== after)
    throw new UsageError(`${file} ends with order ${orderId}: continue it with --after ${orderId}`);
}

/** @returns `undefined` if the file ends within a line, as after a power cut: what is appended would become a part of that line */
async function lastLineOf(file: string, size: number): Promise<string | undefined> {
  const text = await endOf(file, size, LINE_BYTES);
  return text.endsWith('\n') ? text.trimEnd().split('\n').at(-1)! : undefined;
}

/** The last bytes of a file, at most so many. @param size of the file */
export async function endOf(file: string, size: number, most: number): Promise<string> {
  const length = Math.min(most, size);
  const handle = await open(file);
  const { buffer, bytesRead } = await handle
    .read(Buffer.alloc(length), 0, length, size - length)
    .finally(() => handle.close());
  return buffer.toString('utf8', 0, bytesRead);
}
