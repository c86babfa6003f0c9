/**
 * Milliseconds on a clock that never steps back and that all threads of this process share. `performance.now()` starts
 * at each thread's own beginning; `process.hrtime()` is the same everywhere but slower, so it is asked once.
 */
const [seconds, nanoseconds] = process.hrtime();
const offset = seconds * 1e3 + nanoseconds / 1e6 - performance.now();

export function monotonicMs(): number {
  return performance.now() + offset;
}
