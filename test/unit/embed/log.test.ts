/** The log of an embedded shop, which the program's own logger writes. */
import { expect, test } from 'vitest';
import { logTo } from '../../../src/embed/log.ts';

test('gives each line to the logger, with its details first', () => {
  const lines: unknown[] = [];
  const line = (details: object, message: string) => void lines.push([details, message]);
  const log = logTo({ info: line, warn: line, error: line });
  log.info('began');
  log.warn({ saleId: 'web' }, 'late');
  expect(lines).toEqual([
    [{}, 'began'],
    [{ saleId: 'web' }, 'late'],
  ]);
});

test.each<[string, () => void]>([
  [
    'throws',
    () => {
      throw new Error('disk full');
    },
  ],
  ['rejects', () => Promise.reject(new Error('disk full'))],
])('a logger that %s does not stop what logs', async (_, line) => {
  const log = logTo({ info: line, warn: line, error: line });
  for (const level of ['info', 'warn', 'error'] as const)
    log[level]({ err: new Error('no') }, 'a step failed');
  // A rejection that nobody handles would fail this run.
  await new Promise((resolve) => setImmediate(resolve));
});
