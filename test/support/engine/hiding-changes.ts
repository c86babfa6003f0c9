/** A backend that hides changes from a node: no message arrives, and polls see no change. Reads work as usual. */
import type { Backend, SaleRecord, SaleStore } from '../../../src/engine/contract.ts';
import { intercept } from './intercept.ts';

export function hidingChanges(backend: Backend): Backend {
  const lastRead = new Map<string, SaleRecord>();
  const unchanged: Partial<SaleStore> = {
    changeCounter: async () => 'never another one',
    read: async (saleId) => {
      const record = await backend.sales.read(saleId);
      if (record) lastRead.set(saleId, record);
      return record;
    },
    // Without a version, the node would read the sale again, because it may be gone.
    versions: async (saleIds) => saleIds.map((saleId) => lastRead.get(saleId)),
  };
  const sales = new Proxy(backend.sales, {
    get(target, name) {
      const own = unchanged[name as keyof SaleStore] ?? target[name as keyof SaleStore];
      return typeof own === 'function' ? own.bind(target) : own;
    },
  });
  return {
    ...intercept(backend, () => {}),
    sales,
    subscribe: (events) =>
      backend.subscribe({ ...events, ...(events.saleChanged && { saleChanged: () => {} }) }),
  };
}
