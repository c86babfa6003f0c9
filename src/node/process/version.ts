import { createRequire } from 'node:module';

/** The version in package.json. */
export function version(): string {
  return (createRequire(import.meta.url)('../../../package.json') as { version: string }).version;
}
