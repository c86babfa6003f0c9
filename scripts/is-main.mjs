import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/**
 * Whether the program is this module, and not one that imports it. The argument may be a link, or lack the ending of the file.
 * @param {string} moduleUrl
 */
export function isMain(moduleUrl) {
  try {
    return createRequire(import.meta.url).resolve(process.argv[1]) === fileURLToPath(moduleUrl);
  } catch {
    return false;
  }
}
