/** At the end of a test file: what it has reached is written down before its process is ended. */
import { afterAll } from 'vitest';

afterAll(() => {
  (globalThis as { __stryker__?: { write?(): void } }).__stryker__?.write?.();
});
