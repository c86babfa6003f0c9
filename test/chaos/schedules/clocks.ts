/** Faults that set the clocks of running processes. */
import type { Schedule } from '../schedule.ts';
import { untilServed } from '../schedule.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const STEPS_MS = [5 * SECOND_MS, -5 * SECOND_MS, HOUR_MS, -HOUR_MS] as const;

const stepText = 'by +5 s, -5 s, +1 h, -1 h, and back';

export const CLOCKS: readonly Schedule[] = [
  {
    name: 'clock-serve',
    what: `clock of a serve set ${stepText}`,
    times: STEPS_MS.length,
    async strike(scene, time) {
      const { stepClock } = scene.world.nodes[0]!;
      await stepClock(STEPS_MS[time % STEPS_MS.length]!);
      await scene.hold();
      await stepClock(0);
      await untilServed(scene, 20);
    },
  },
  {
    name: 'clock-all',
    what: `clocks of all serves and sync set ${stepText}`,
    times: STEPS_MS.length,
    async strike(scene, time) {
      const step = (ms: number) => Promise.all(scene.world.all.map(({ stepClock }) => stepClock(ms)));
      await step(STEPS_MS[time % STEPS_MS.length]!);
      await scene.hold();
      await step(0);
      await untilServed(scene, 20);
    },
  },
];
