/** Sends many commands and waits for all replies. How they travel depends on whether one server has all keys. */
import type { Cluster, Redis } from 'ioredis';
import { withTimeout } from '../lib/with-timeout.ts';

export type Command = readonly [name: string, ...args: (string | number)[]];
/** The error or the reply of one command. A failed command does not affect the others. */
export type Reply = readonly [error: Error | null, reply: unknown];
export type SendAll = (commands: readonly Command[]) => Promise<readonly Reply[]>;

export function pipelined(redis: Redis): SendAll {
  return async (commands) => (await redis.pipeline(commands.map((command) => [...command])).exec()) ?? [];
}

/**
 * Sends each command to the server of its key. @param limitMs a reply that takes longer counts as failed; default: no
 * limit
 */
export function scattered(cluster: Cluster, limitMs?: number): SendAll {
  const send = ([name, ...args]: Command): Promise<unknown> => {
    const reply = cluster.call(name, ...args);
    return limitMs === undefined ? reply : withTimeout(limitMs, reply);
  };
  return async (commands) => {
    const sent = await Promise.allSettled(commands.map(send));
    return sent.map((end) =>
      end.status === 'fulfilled' ? [null, end.value] : [asError(end.reason), undefined],
    );
  };
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
