/**
 * What a node prints at a terminal when it starts and stops. Without a terminal, it only logs.
 */
import type { Config } from '../../config/config.ts';
import { describeConfig } from '../../config/describe.ts';
import { TEARDOWN_LIMIT_MS } from '../../lib/teardown.ts';
import { plural } from './output.ts';

/** Printed before anything is loaded, because that may take seconds. */
export function startingText(config: Config): string {
  const { REDIS_URL, DATABASE_URL } = describeConfig(config);
  const stock = REDIS_URL ?? 'this process';
  const orders = DATABASE_URL ?? `PGlite in ${config.dataDir}, which takes some seconds to boot`;
  return `Starting a node (stock in ${stock}; orders in ${orders}) …`;
}

export const HOW_TO_STOP = 'Ctrl-C stops it.';

/** Printed if `STOP_DELAY_MS` is set, before the stop itself. */
export function leavingText({ stopDelayMs }: Config): string {
  return `Stopping in ${stopDelayMs / 1_000} s; until then it sells, and /readyz says 503. A second Ctrl-C ends it at once …`;
}

/** @param underWay `undefined` if a worker did not report its number in time */
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
