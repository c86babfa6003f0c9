/**
 * Milliseconds on a clock that never steps back and that all threads of this process share. `performance.now()`
 * counts from the start of each thread. `process.hrtime()` has one origin for all threads but is slower, so it is
 * read once.
 */
const [seconds, nanoseconds] = process.hrtime();
const offset = seconds * 1e3 + nanoseconds / 1e6 - performance.now();

export function monotonicMs(): number {
  return performance.now() + offset;
}
