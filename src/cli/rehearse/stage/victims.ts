/**
 * Faults of a rehearsal. They hurt only a node that the rehearsal has started for them: it serves its part of the crowd beside the
 * others, until it is killed, or until its way to Redis is cut for some seconds. Its buyers go on at the other nodes.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../../config/config.ts';
import { redisUrls } from '../../../config/values/redis-urls.ts';
import { monotonicMs } from '../../../lib/monotonic.ts';
import { UsageError } from '../../terminal/explain.ts';
import { AT_SHARE, CUT_SECONDS, type Fault, type FaultKind } from '../crowd/fault.ts';
import type { Plan } from '../crowd/plan.ts';
import { type OwnNode, startOwnNode } from './nodes.ts';
import { openRedisProxy } from './redis-proxy.ts';

export interface Victim {
  readonly kind: FaultKind;
  readonly node: OwnNode;
  /** Waits for its time and hurts the node. @returns when it was; `undefined` if the signal came first */
  strike(startAtMs: number, signal: AbortSignal): Promise<Fault | undefined>;
  stop(): Promise<void>;
}

/** @throws UsageError if these faults are not possible with these stores */
export function refuseFaults({ redisUrl, databaseUrl }: Config, { faults }: Plan): void {
  if (faults.length === 0) return;
  const flags = faults.map((kind) => `--${kind}`).join(', ');
  if (redisUrl === undefined || databaseUrl === undefined)
    throw new UsageError(`${flags}: set REDIS_URL and DATABASE_URL, because other nodes must go on selling`);
  const urls = redisUrls(redisUrl.reveal());
  if (faults.includes('cut-redis') && (urls.length > 1 || !urls[0]!.startsWith('redis://')))
    throw new UsageError(
      '--cut-redis can cut the way to one Redis without TLS only (redis://): not to a cluster, and not through TLS',
    );
}

export async function startVictim(kind: FaultKind, config: Config, plan: Plan): Promise<Victim> {
  const atMs = AT_SHARE[plan.arrivals] * plan.seconds * 1_000;
  const due = (startAtMs: number, signal: AbortSignal) =>
    delay(Math.max(0, startAtMs + atMs - monotonicMs()), undefined, { signal }).then(
      () => true,
      () => false,
    );
  if (kind === 'kill-node') {
    const node = await startOwnNode(config);
    return {
      ...{ kind, node, stop: () => node.stop() },
      async strike(startAtMs, signal) {
        if (!(await due(startAtMs, signal))) return undefined;
        node.kill();
        const at = (monotonicMs() - startAtMs) / 1_000;
        return { kind, from: at, until: at };
      },
    };
  }
  const proxy = await openRedisProxy(redisUrls(config.redisUrl!.reveal())[0]!);
  try {
    const node = await startOwnNode(config, { REDIS_URL: proxy.url });
    return {
      ...{ kind, node },
      async strike(startAtMs, signal) {
        if (!(await due(startAtMs, signal))) return undefined;
        const from = (monotonicMs() - startAtMs) / 1_000;
        proxy.cut();
        await delay(CUT_SECONDS * 1_000, undefined, { signal }).catch(() => {});
        proxy.join();
        return { kind, from, until: (monotonicMs() - startAtMs) / 1_000 };
      },
      async stop() {
        proxy.join();
        await node.stop();
        await proxy.close();
      },
    };
  } catch (error) {
    await proxy.close();
    throw error;
  }
}
