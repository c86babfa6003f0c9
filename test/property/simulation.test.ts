/** The simulation (test/sim/main.ts): promises hold in any weather, a seed repeats, and planted bugs are found. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const MAIN = fileURLToPath(new URL('../sim/main.ts', import.meta.url));
/** A run takes a minute of two cores; they may have much else to do. */
const TIMEOUT_MS = 1_200_000;
const MAX_OUTPUT_BYTES = 16 * 2 ** 20;

interface Summary {
  readonly seeds: number;
  readonly violations: number;
  readonly failures: readonly unknown[];
  readonly hashes: Readonly<Record<string, string>>;
  readonly mutationsPlanted: number;
  readonly mutationsFound: number;
  readonly notFound: readonly string[];
}

/** Its exit code says no more than the summary does. */
async function simulate(...args: string[]): Promise<Summary> {
  const options = { maxBuffer: MAX_OUTPUT_BYTES };
  const run = promisify(execFile)(process.execPath, ['--import', 'tsx', MAIN, '--json', ...args], options);
  const { stdout } = await run.catch((error) => {
    if (error.stdout) return error as { stdout: string };
    throw error;
  });
  return JSON.parse(stdout);
}

describe('the simulation', { timeout: TIMEOUT_MS }, () => {
  it('finds no promise broken in 100 seeds, and repeats a seed exactly', async () => {
    const { seeds, violations, failures, hashes } = await simulate('--seeds', '100');
    expect({ seeds, violations, failures }).toEqual({ seeds: 100, violations: 0, failures: [] });
    // In another process, behind other seeds.
    const again = await simulate('--seeds', '4', '--first', '40', '--processes', '1');
    expect(Object.keys(again.hashes)).toHaveLength(4);
    expect(hashes).toMatchObject(again.hashes);
  });

  it('finds every planted bug within 1,000 seeds', async () => {
    const { mutationsPlanted, mutationsFound, notFound } = await simulate('--mutations', '--seeds', '1000');
    expect(notFound).toEqual([]);
    expect(mutationsPlanted).toBeGreaterThanOrEqual(12);
    expect(mutationsFound).toBe(mutationsPlanted);
  });
});
