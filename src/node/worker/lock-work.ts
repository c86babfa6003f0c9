import type { Inside } from '../../engine/locked/locked-takes.ts';
import { loadShopModule } from './shop-module.ts';

/** The shop's own work under the lock. @throws StockadeError if the module can't be loaded, or exports no `inside` */
export async function loadLockWork(file: string): Promise<Inside> {
  return (await loadShopModule('LOCK_WORK', file, ['inside'])).inside as Inside;
}
