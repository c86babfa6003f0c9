/**
 * Writes an export to a file that has its name only when it is complete and on the disk. So whatever ends the command, no part
 * of an export is in the way of the next attempt, or looks like the whole.
 *
 *   FILE.1f2e3d4c.part is written -> it is on the disk -> it gets the name FILE -> that is on the disk
 *
 * If the process is killed before the name, the part stays under its own name, and nobody reads it.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { link, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { COMPLETE, endOf, refuseNoFile } from '../order/export-file.ts';
import { UsageError } from '../terminal/explain.ts';

/** The last line of a complete export is not longer. */
const LAST_LINE_BYTES = 64;

/**
 * A file that exists is never changed. It may have the same content already, as after an attempt that was refused: then it stays.
 * @param write writes the content, which ends with the last line of an export
 * @returns whether the file is new
 * @throws UsageError if there can't be such a file, or it exists with another content; what `write` throws. Then the file is as it was before.
 */
export async function writeWhole(
  file: string,
  write: (out: Writable) => Promise<void>,
): Promise<{ isNew: boolean }> {
  await refuseNoFile(file);
  if ((await exists(file)) && !(await isExport(file))) throw taken(file);
  const part = `${file}.${randomBytes(4).toString('hex')}.part`;
  const out = createWriteStream(part, { flags: 'wx', flush: true });
  try {
    await once(out, 'open');
    await write(out);
    await finished(out.end());
    const isNew = await name(part, file);
    await rm(part, { force: true });
    await syncFolder(dirname(file)).catch(async (error) => {
      if (isNew) await rm(file, { force: true });
      throw error;
    });
    return { isNew };
  } finally {
    out.destroy();
    await rm(part, { force: true }).catch(() => {});
  }
}

/** @returns whether the name was free. If not, the file has the same content. @throws UsageError if it has not */
async function name(part: string, file: string): Promise<boolean> {
  try {
    await link(part, file);
    return true;
  } catch {
    // The name is taken, or the file system has no links.
  }
  if (await exists(file)) {
    if (await areSame(part, file)) return false;
    throw taken(file);
  }
  await rename(part, file);
  return true;
}

const taken = (file: string) =>
  new UsageError(
    `${file} exists, and does not have exactly the orders of now: name a new file for the export`,
  );

const exists = (file: string) =>
  stat(file).then(
    () => true,
    () => false,
  );

/** Whether the file ends as a complete export does. */
async function isExport(file: string): Promise<boolean> {
  const found = await stat(file);
  if (!found.isFile()) return false;
  return COMPLETE.test(await endOf(file, found.size, LAST_LINE_BYTES));
}

async function areSame(one: string, other: string): Promise<boolean> {
  const [{ size }, found] = await Promise.all([stat(one), stat(other)]);
  if (size !== found.size) return false;
  // Pieces of both have the same size, except for the last one.
  const others = createReadStream(other)[Symbol.asyncIterator]();
  for await (const piece of createReadStream(one)) {
    const next = await others.next();
    if (next.done || !(piece as Buffer).equals(next.value)) return false;
  }
  return true;
}

/** Errors of systems that can't open a folder, or can't sync one. */
const NO_SYNC: readonly (string | undefined)[] = [
  ...['EISDIR', 'EACCES', 'EPERM', 'EBADF', 'EINVAL'],
  ...['ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'],
];

/** The stream has synced the file, but not its name: after a power cut, the file could be gone and its orders deleted. */
async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder);
    await handle.sync().finally(() => handle.close());
  } catch (error) {
    if (!NO_SYNC.includes((error as NodeJS.ErrnoException).code)) throw error;
  }
}
