import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { StockadeError } from '../engine/errors.ts';
import type { Inside } from '../engine/lock/locked-takes.ts';

/** The shop's own work under the lock. @throws StockadeError if the module can't be loaded, or exports no such function */
export async function loadLockWork(file: string): Promise<Inside> {
  const path = resolve(file);
  const module = await import(pathToFileURL(path).href).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new StockadeError('invalid_config', `LOCK_WORK names ${path}, which can't be loaded: ${why}`, {
      cause,
    });
  });
  if (typeof module.inside === 'function') return module.inside as Inside;
  const exports = Object.keys(module);
  throw new StockadeError(
    'invalid_config',
    `LOCK_WORK names ${path}, which must export a function \`inside\`; it exports ${exports.join(', ') || 'nothing'}`,
  );
}
