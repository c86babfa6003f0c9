import { number } from '../terminal/output.ts';
import { type Check, type ClockReading, checksOf } from './check.ts';

const { ok, warn } = checksOf('clocks');
/** Sale windows and order ids go by the clocks of the nodes, commit times by that of Postgres. So the clocks should agree. */
const MAX_DIFFERENCE_MS = 500;

export function checkClocks(readings: readonly ClockReading[]): Check[] {
  if (readings.length === 0) return [];
  const ahead = [0, ...readings.map(({ aheadMs }) => aheadMs)];
  const apart = Math.max(...ahead) - Math.min(...ahead);
  const found = readings
    .map(
      ({ store, aheadMs, uncertainMs }) =>
        `${store} ${signed(aheadMs)} ms (± ${number(Math.ceil(uncertainMs))})`,
    )
    .join(', ');
  return [
    apart > MAX_DIFFERENCE_MS
      ? warn('difference', `${found} from this machine`, 'Let NTP set the clocks of all machines.')
      : ok('difference', `${found} from this machine`),
  ];
}

function signed(value: number): string {
  const whole = Math.round(value);
  return whole < 0 ? number(whole) : `+${number(whole)}`;
}
