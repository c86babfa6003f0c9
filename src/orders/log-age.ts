import { takenAtMs } from '../engine/order-id.ts';

/** Longest time that an order may be in its log but not in Postgres: sync's greatest lag. */
const MAX_LAG_MS = 24 * 3_600_000;
/** Ids carry Postgres' time, and stay ahead if its clock was once ahead. So this machine's clock may be far behind them. */
const MAX_CLOCK_LEAD_MS = 24 * 3_600_000;

/** Whether an order that is not in Postgres may still be in its log, judging by the time in its id. */
export function mayBeInLog(orderId: string): boolean {
  const ageMs = Date.now() - takenAtMs(orderId);
  return ageMs >= -MAX_CLOCK_LEAD_MS && ageMs <= MAX_LAG_MS;
}
