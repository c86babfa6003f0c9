import { afterEach, describe, expect, test, vi } from 'vitest';
import { progressBar } from '../../../../src/cli/terminal/progress.ts';

const { isTTY } = process.stderr;
let written = '';

/** What a bar writes to a terminal of this kind. */
function writtenBy(terminal: string, total = 2): string {
  written = '';
  vi.stubEnv('TERM', terminal);
  Object.assign(process.stderr, { isTTY: true });
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    written += text;
    return true;
  });
  const bar = progressBar(total, 'orders');
  bar.update(1);
  bar.update(3, 3);
  bar.stop();
  return written;
}

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  Object.assign(process.stderr, { isTTY });
});

describe('a progress bar', () => {
  test('is drawn on a terminal that can draw in one place', () => {
    expect(writtenBy('xterm')).toMatch(/0\/2 orders/);
  });

  test('writes large numbers as everything else does', () => {
    expect(writtenBy('xterm', 8_000)).toMatch(/0\/8,000 orders/);
  });

  test('is not drawn on one that can’t: it would show the sequences themselves', () => {
    expect(writtenBy('dumb')).toBe('');
  });
});
