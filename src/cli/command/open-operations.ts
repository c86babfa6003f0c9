import type { BuyerOperations } from '../../operations/buyer-operations.ts';
import type { EventOperations } from '../../operations/event-operations.ts';
import type { OrderOperations } from '../../operations/order-operations.ts';
import type { SaleOperations } from '../../operations/sale-operations.ts';
import type { Invocation } from './command.ts';
import { OpsClient } from './ops-client.ts';

/**
 * Runs `work` with the operators' services: on the stores themselves if both are named, else through a running node. If
 * OPS_URL is set, always through that node.
 */
export async function withOperations<T>(
  { config, log }: Pick<Invocation, 'config' | 'log'>,
  work: (
    sales: SaleOperations,
    orders: OrderOperations,
    events: EventOperations,
    buyers: BuyerOperations,
  ) => Promise<T>,
): Promise<T> {
  if (config.redisUrl && config.databaseUrl && !config.opsUrl) {
    const { openServices } = await import('../../node/services.ts');
    const services = await openServices(config, log);
    try {
      return await work(services.operations, services.orders, services.events, services.buyers);
    } finally {
      await services.close();
    }
  }
  const client = new OpsClient(config);
  try {
    return await work(client, client, client, client);
  } finally {
    await client.disconnect();
  }
}
