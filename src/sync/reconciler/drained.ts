/** When a sale that sells can be rebuilt: buyers wait while the orders in its logs are applied, so the logs must be short. */
import type { SaleLog } from '../apply/sale-log.ts';

const DRAINED_ORDERS = 2_000;
/** Longest wait for short logs, in case buyers take more than sync can apply. */
const DRAIN_MAX_S = 20;

/** @param ageS how long the rebuild has waited, in seconds */
export function isToBeDrained({ backlog }: Pick<SaleLog, 'backlog'>, ageS: number): boolean {
  return backlog > DRAINED_ORDERS && ageS < DRAIN_MAX_S;
}
