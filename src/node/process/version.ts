import { createRequire } from 'node:module';

/** Of this program. */
export function version(): string {
  return (createRequire(import.meta.url)('../../../package.json') as { version: string }).version;
}
