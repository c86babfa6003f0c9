import { expect, test } from 'vitest';
import { rest } from '../../../src/lib/rest.ts';

const FOR_EVER_MS = 2 ** 30;

test('ends when its time is over', async () => {
  const began = performance.now();
  await rest(20, new AbortController().signal);
  // A timer may fire a millisecond early.
  expect(performance.now() - began).toBeGreaterThanOrEqual(18);
});

test('ends when the signal is aborted', async () => {
  const end = new AbortController();
  const resting = rest(FOR_EVER_MS, end.signal);
  end.abort();
  await resting;
});

test('does not begin when the signal is aborted already', async () => {
  await rest(FOR_EVER_MS, AbortSignal.abort());
});

test('ends at once for 0 ms and less', async () => {
  await rest(0, new AbortController().signal);
  await rest(-1, new AbortController().signal);
});
