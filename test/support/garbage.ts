import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Now: what nobody can reach is gone when it returns, except what this turn of the event loop has looked at. */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}
