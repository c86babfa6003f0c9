/** A backend that hides changes from a node: no message arrives, and polls see no change. Reads work as usual. */
import type { Backend, SaleStore } from '../../../src/engine/contract.ts';
import { intercept } from './intercept.ts';

export function hidingChanges(backend: Backend): Backend {
  const unchanged: Partial<SaleStore> = {
    changeCounter: async () => 'never another one',
    versions: async (saleIds) => saleIds.map(() => undefined),
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
