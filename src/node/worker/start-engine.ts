import { OrderIds } from '../../engine/order-id.ts';
import { Engine, type EngineOptions } from '../../engine/purchase/engine.ts';
import { assertLeased, type LeaseEnd, namingTimeMs } from '../../postgres/lease-end.ts';

export interface EngineParts extends Omit<EngineOptions, 'nextOrderId'> {
  /** It must be the same in all processes of the shop. */
  readonly orderIdKey: Uint8Array;
  /** The end of the lease of the worker number, as known now. */
  readonly leaseEnd: () => LeaseEnd;
}

/** An engine that puts a leased worker number into its order ids, and sells nothing once the lease is over. */
export function startEngine({ orderIdKey, leaseEnd, ...options }: EngineParts): Promise<Engine> {
  const ids = new OrderIds({
    key: orderIdKey,
    worker: options.worker,
    now: () => namingTimeMs(leaseEnd()),
  });
  return Engine.start({
    ...options,
    nextOrderId: () => {
      assertLeased(leaseEnd());
      return ids.next();
    },
  });
}
