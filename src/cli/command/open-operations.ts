import type { Services } from '../../node/services.ts';
import { UnknownSale } from '../../operations/sale-operations.ts';
import type { Invocation } from './command.ts';
import { goneSale } from './gone-sale.ts';
import { OpsClient } from './ops-client.ts';

type Operations = Omit<Services, 'close'>;

/**
 * Runs `work` with the operators' services: on the stores themselves if both are named, else through a running node. If
 * OPS_URL is set, always through that node.
 */
export async function withOperations<T>(
  { config, log }: Pick<Invocation, 'config' | 'log'>,
  work: (operations: Operations) => Promise<T>,
): Promise<T> {
  const hasStores = config.redisUrl !== undefined && config.databaseUrl !== undefined;
  if (hasStores && !config.opsUrl) {
    const { openServices } = await import('../../node/services.ts');
    const services = await openServices(config, log);
    try {
      return await working(services, work);
    } finally {
      await services.close();
    }
  }
  const client = new OpsClient(config, hasStores ? 'unset OPS_URL' : 'set both REDIS_URL and DATABASE_URL');
  try {
    const operations = { sales: client, queues: client, orders: client, buyers: client, events: client };
    return await working(operations, work);
  } finally {
    await client.disconnect();
  }
}

async function working<T>(operations: Operations, work: (operations: Operations) => Promise<T>): Promise<T> {
  try {
    return await work(operations);
  } catch (error) {
    throw error instanceof UnknownSale ? await goneSale(error, operations.sales) : error;
  }
}
