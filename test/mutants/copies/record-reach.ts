/** Records what a test file has reached, at its end and before its process is ended. */
import { afterAll } from 'vitest';

afterAll(() => {
  (globalThis as { __stryker__?: { write?(): void } }).__stryker__?.write?.();
});
