import { takenAtMs } from '../engine/order-id.ts';

/** An order is in its log and not in Postgres only as long as sync may lag. */
const MAX_LAG_MS = 24 * 3_600_000;
/** Ids take their time from Postgres, and keep the lead that its clock once had: this machine's may be far behind. */
const MAX_CLOCK_LEAD_MS = 24 * 3_600_000;

/** Whether an order that Postgres does not have may be in its log still, by the time that its id names. */
export function mayBeInLog(orderId: string): boolean {
  const ageMs = Date.now() - takenAtMs(orderId);
  return ageMs >= -MAX_CLOCK_LEAD_MS && ageMs <= MAX_LAG_MS;
}
