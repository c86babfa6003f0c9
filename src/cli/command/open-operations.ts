import type { Services } from '../../node/services.ts';
import type { Invocation } from './command.ts';
import { OpsClient } from './ops-client.ts';

/**
 * Runs `work` with the operators' services: on the stores themselves if both are named, else through a running node. If
 * OPS_URL is set, always through that node.
 */
export async function withOperations<T>(
  { config, log }: Pick<Invocation, 'config' | 'log'>,
  work: (operations: Omit<Services, 'close'>) => Promise<T>,
): Promise<T> {
  const hasStores = config.redisUrl !== undefined && config.databaseUrl !== undefined;
  if (hasStores && !config.opsUrl) {
    const { openServices } = await import('../../node/services.ts');
    const services = await openServices(config, log);
    try {
      return await work(services);
    } finally {
      await services.close();
    }
  }
  const client = new OpsClient(config, hasStores ? 'unset OPS_URL' : 'set both REDIS_URL and DATABASE_URL');
  try {
    return await work({ sales: client, queues: client, orders: client, buyers: client, events: client });
  } finally {
    await client.disconnect();
  }
}
