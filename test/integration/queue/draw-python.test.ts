/** A second program, in Python, draws the same order from the same file. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findServer } from '../../../scripts/servers.mjs';
import { seed } from '../../support/fixtures.ts';
import { linesOf, madeDraw } from '../../support/queue/drawn-file.ts';

const PROGRAM = fileURLToPath(new URL('../../support/queue/draw.py', import.meta.url));
/** More than the order of the largest draw has. */
const MAX_OUTPUT_BYTES = 10_000_000;

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'draw-'));
});

afterAll(() => rmSync(folder, { recursive: true }));

/** @returns the numbers in the order that Python draws. Rejects with the fault that it finds in the file. */
async function drawnByPython(lines: readonly string[]): Promise<number[]> {
  const programs = findServer('python');
  if (!programs) throw new Error('Python not found: run `node scripts/ensure-servers.mjs python`');
  const file = join(folder, 'draw.ndjson');
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  const { stdout } = await promisify(execFile)(join(programs, 'python3'), [PROGRAM, file], {
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  return stdout.split('\n').filter(Boolean).map(Number);
}

describe('Python draws the same order', () => {
  test.each([0, 1, 2, 1_000, 70_000])('of %d entries', async (entries) => {
    const made = madeDraw(seed(), entries);
    expect(await drawnByPython(await linesOf(made))).toEqual([...made.numbers.array]);
  });

  test('of entries of which some are nobody’s', async () => {
    const made = madeDraw(seed(), 50, [1, 7, 50]);
    expect(await drawnByPython(await linesOf(made))).toEqual([...made.numbers.array]);
  });

  test('whatever the order of the lines, and says if it is another one', async () => {
    const [header, ...entries] = await linesOf(madeDraw(seed(), 1_000));
    await expect(drawnByPython([header!, ...entries.reverse()])).rejects.toThrow('the order is another one');
  });
});
