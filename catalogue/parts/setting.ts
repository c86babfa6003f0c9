/** The setting outside of tests: no call is held, time is the machine's, and every buyer is accepted. */
import type { Clock, Setting, Steps } from './contract.ts';

const NO_STEPS: Steps = { at: () => undefined };

export const MACHINE_CLOCK: Clock = {
  now: Date.now,
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener('abort', done);
      if (signal?.aborted) done();
    }),
  every: (ms, task) => {
    const timer = setInterval(() => void task(), ms);
    timer.unref();
    return () => clearInterval(timer);
  },
};

export const PLAIN_SETTING: Setting = {
  steps: NO_STEPS,
  clock: MACHINE_CLOCK,
  checkBuyer: async () => {},
};
