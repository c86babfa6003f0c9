/** Mutants are judged by the small forms of tests, in whatever shell the command runs. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import { runTests } from '../../mutants/copies/suites.ts';

const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url));
const COPIES = 'test/mutants/copies';
const FILE = 'test/unit/tier.test.ts';

const TEST = `
import { expect, test } from 'vitest';
test('the tier', () => expect(process.env.TEST_TIER).toBe('test'));
`;

test('a shell for release tests changes nothing', async () => {
  const root = mkdtempSync(join(tmpdir(), 'stockade-tier-'));
  vi.stubEnv('TEST_TIER', 'release');
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(root, { recursive: true });
  });
  symlinkSync(join(REPOSITORY, 'node_modules'), join(root, 'node_modules'));
  cpSync(join(REPOSITORY, COPIES), join(root, COPIES), { recursive: true });
  mkdirSync(join(root, 'test/unit'));
  writeFileSync(join(root, FILE), TEST);
  expect(await runTests(root, [FILE], 60_000, undefined)).toMatchObject({ passed: true, failure: '' });
});
