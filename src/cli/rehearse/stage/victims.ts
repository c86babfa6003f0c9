/**
 * Faults of a rehearsal. They hurt only a node that the rehearsal has started for them: it serves its part of the crowd beside the
 * others, until it is killed, or until its way to Redis is cut for some seconds. Its buyers go on at the other nodes.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../../config/config.ts';
import { redisUrls } from '../../../config/values/redis-urls.ts';
import { UsageError } from '../../terminal/explain.ts';
import type { Plan } from '../crowd/plan.ts';
import type { Fault, FaultKind } from './fault.ts';
import { type OwnNode, startOwnNode } from './nodes.ts';
import { openRedisProxy } from './redis-proxy.ts';

/** How long Redis is cut off: longer than the deadline of a purchase. */
const CUT_SECONDS = 3;
/** Where in the time of the crowd the fault comes, as a share: while its rate is the highest. */
const AT_SHARE = { steady: 0.45, rush: 0.12, waves: 0.44 } as const;

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
    delay(Math.max(0, startAtMs + atMs - Date.now()), undefined, { signal }).then(
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
        const at = (Date.now() - startAtMs) / 1_000;
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
        const from = (Date.now() - startAtMs) / 1_000;
        proxy.cut();
        await delay(CUT_SECONDS * 1_000, undefined, { signal }).catch(() => {});
        proxy.join();
        return { kind, from, until: (Date.now() - startAtMs) / 1_000 };
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
