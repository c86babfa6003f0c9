import { OrderIds } from '../../engine/order-id.ts';
import { Engine, type EngineOptions } from '../../engine/purchase/engine.ts';
import { assertLeased, type LeaseEnd, namingTimeMs } from '../../postgres/lease-end.ts';

export interface EngineParts extends Omit<EngineOptions, 'nextOrderId'> {
  /** The same in all processes of the shop. */
  readonly orderIdKey: Uint8Array;
  /** Until when the worker number may be used, as it is known now. */
  readonly leaseEnd: () => LeaseEnd;
}

/** An engine that names its orders by a leased worker number, and takes nothing once the lease is over. */
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
