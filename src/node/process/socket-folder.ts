import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What the path of a socket may have on every system, in bytes. */
const PATH_MAX_BYTES = 103;

/** A name of a folder that is short enough for sockets in it. */
export interface SocketFolder {
  readonly name: string;
  /** Call it when no more sockets are opened or reached by this name. */
  remove(): void;
}

/**
 * The folder itself, or a link to it if its own name is too long.
 * @param socketBytes how long the name of a socket in it may be
 */
export function socketFolder(folder: string, socketBytes: number): SocketFolder {
  if (Buffer.byteLength(folder) + 1 + socketBytes <= PATH_MAX_BYTES) return { name: folder, remove() {} };
  const temporary = mkdtempSync(join(tmpdir(), 'stockade-'));
  const name = join(temporary, 'd');
  symlinkSync(folder, name);
  return { name, remove: () => rmSync(temporary, { recursive: true, force: true }) };
}
