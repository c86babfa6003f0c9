import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { logOutput, lostLogLines } from '../../../src/node/process/log-output.ts';

/** With the line break, a line has this many bytes. */
const LINE_BYTES = 1_000;
const KEPT_BYTES = 200_000;
/** More than a pipe has room for, and what is kept. */
const MANY = 500;

const lineOf = (n: number) => `${String(n).padEnd(LINE_BYTES - 1)}\n`;

/** @returns an output to a pipe that is read only by `read`, and what it was told */
function pipe() {
  const folder = mkdtempSync(join(tmpdir(), 'log-'));
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  onTestFinished(() => {
    closeSync(fd);
    rmSync(folder, { recursive: true });
  });
  const told: number[] = [];
  const output = logOutput(fd, (lost) => void told.push(lost), KEPT_BYTES);
  let unread = '';
  /** The numbers of the lines that have arrived. */
  const read = (): number[] => {
    const buffer = Buffer.alloc(65_536);
    try {
      for (;;) unread += buffer.toString('utf8', 0, readSync(fd, buffer));
    } catch (error) {
      expect(error).toMatchObject({ code: 'EAGAIN' });
    }
    const whole = unread.slice(0, unread.lastIndexOf('\n') + 1);
    unread = unread.slice(whole.length);
    return whole.split('\n').filter(Boolean).map(Number);
  };
  return { output, told, read };
}

test('while the reader does not read, lines are kept; those that are too many are lost and counted', () => {
  const { output, told, read } = pipe();
  const before = lostLogLines();
  const began = performance.now();
  for (let n = 0; n < MANY; n++) output.write(lineOf(n));
  // It has waited for the reader once, not for each line.
  expect(performance.now() - began).toBeLessThan(10_000);
  expect(told).toEqual([]);

  const arrived = read();
  // There is no room for this line yet. Then the kept ones are written.
  output.write(lineOf(MANY));
  const lost = lostLogLines() - before;
  expect(told).toEqual([lost]);
  let next = MANY + 1;
  for (; arrived.length < next - lost && next < 2 * MANY; next++) {
    output.write(lineOf(next));
    arrived.push(...read());
  }
  const firstLost = MANY + 1 - lost;
  expect(firstLost).toBeGreaterThan(KEPT_BYTES / LINE_BYTES);
  const expected = Array.from({ length: next - lost }, (_, i) => (i < firstLost ? i : i + lost));
  expect(arrived).toEqual(expected);
  expect(lostLogLines() - before).toBe(lost);
});

test('while its disk is full, lines are kept, and those that are too many are lost and counted', () => {
  const full = openSync('/dev/full', 'w');
  onTestFinished(() => closeSync(full));
  const before = lostLogLines();
  const output = logOutput(full, () => expect.unreachable(), KEPT_BYTES);
  for (let n = 0; n < MANY; n++) output.write(lineOf(n));
  expect(lostLogLines() - before).toBe(MANY - KEPT_BYTES / LINE_BYTES);
});
