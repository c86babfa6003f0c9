/**
 * What a node tells whoever watches it start and stop at a terminal. Elsewhere its log is all: a program reads that, and
 * `--json` keeps stdout for one object.
 */
import type { Config } from '../../config/config.ts';
import { describeConfig } from '../../config/describe.ts';
import { TEARDOWN_LIMIT_MS } from '../../lib/teardown.ts';
import { plural } from './output.ts';

/** Before anything is loaded: that alone may take seconds. */
export function startingText(config: Config): string {
  const { REDIS_URL, DATABASE_URL } = describeConfig(config);
  const stock = REDIS_URL ?? 'this process';
  const orders = DATABASE_URL ?? `PGlite in ${config.dataDir}, which takes 2 to 3 seconds to boot`;
  return `Starting a node (stock in ${stock}; orders in ${orders}) …`;
}

export const HOW_TO_STOP = 'Ctrl-C stops it.';

/** @param underWay `undefined`: the workers did not say */
export function stoppingText(underWay: number | undefined, { shutdownGraceMs }: Config): string {
  const grace = `${shutdownGraceMs / 1_000} s`;
  const most = `${(shutdownGraceMs + TEARDOWN_LIMIT_MS) / 1_000} s`;
  const requests = underWay === undefined ? 'requests under way' : `${plural(underWay, 'request')} under way`;
  return underWay === 0
    ? `Stopping: no request is under way. It takes at most ${most}; a second Ctrl-C ends it at once …`
    : `Stopping: ${requests}, answered within ${grace}. It takes at most ${most}; a second Ctrl-C ends it at once …`;
}

export function stoppedText(tookMs: number): string {
  return `Stopped after ${(tookMs / 1_000).toFixed(1)} s.`;
}
