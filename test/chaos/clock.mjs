// Steps the clock of a process that loads this file with --import: moves Date, in all threads, by the milliseconds
// that the file CHAOS_CLOCK holds at the time. Clocks that don't depend on the date (performance.now, timers) are
// left alone, as when the clock of a machine is set.
import { readFileSync } from 'node:fs';

const LOOK_EVERY_MS = 20;
const file = process.env.CHAOS_CLOCK;
const RealDate = Date;
let stepMs = 0;

function look() {
  try {
    stepMs = Number(readFileSync(file, 'utf8'));
  } catch {
    // The file is not there yet, or is being written.
  }
}

if (file !== undefined) {
  look();
  setInterval(look, LOOK_EVERY_MS).unref();
  const now = () => RealDate.now() + stepMs;
  globalThis.Date = new Proxy(RealDate, {
    get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
    construct: (target, args, self) => Reflect.construct(target, args.length === 0 ? [now()] : args, self),
    apply: () => new RealDate(now()).toString(),
  });
}
