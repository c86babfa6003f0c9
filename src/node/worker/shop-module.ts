import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { StockadeError } from '../../engine/errors.ts';
import { importModule } from '../process/import-module.ts';

/**
 * Loads a file of the shop and returns the functions that it exports.
 * @param setting the name of the setting that holds the file's path, for the errors
 * @throws StockadeError `invalid_config` if it can't be loaded, or does not export all of them
 */
export async function loadShopModule<Name extends string>(
  setting: string,
  file: string,
  names: readonly Name[],
): Promise<Readonly<Record<Name, unknown>>> {
  const path = resolve(file);
  const url = pathToFileURL(path).href;
  const module = await importModule<Record<string, unknown>>(url).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new StockadeError('invalid_config', `${setting} names ${path}, which can't be loaded: ${why}`, {
      cause,
    });
  });
  if (names.every((name) => typeof module[name] === 'function')) return module as Record<Name, unknown>;
  const wanted = names.map((name) => `\`${name}\``).join(' and ');
  const exported = Object.keys(module).join(', ') || 'nothing';
  throw new StockadeError(
    'invalid_config',
    `${setting} names ${path}, which must export ${names.length === 1 ? 'a function' : 'functions'} ${wanted}; it exports ${exported}`,
  );
}
