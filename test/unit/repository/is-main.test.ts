/** The programs of scripts/ that others import too. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

test('a program does its work through a link too', { timeout: 30_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'link-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  symlinkSync(ROOT, join(folder, 'stockade'));
  const program = join(folder, 'stockade/scripts/lint-descriptions.mjs');
  expect(execFileSync(process.execPath, [program], { encoding: 'utf8' })).toMatch(/the linter finds nothing/);
});
