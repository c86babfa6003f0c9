/** The programs of scripts/ that others import too (scripts/is-main.mjs). */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const IS_MAIN = fileURLToPath(new URL('../../../scripts/is-main.mjs', import.meta.url));
const PROGRAM = `
import { isMain } from './is-main.mjs';
console.log(isMain(import.meta.url) ? 'does its work' : 'is imported');
`;

test.each([
  ['its own path', 'scripts/program.mjs', 'does its work\n'],
  ['a link', 'link/program.mjs', 'does its work\n'],
  ['a program that imports it', 'scripts/other.mjs', 'is imported\n'],
])('a program does its work only if it is started, not imported: %s', (_, started, printed) => {
  const folder = mkdtempSync(join(tmpdir(), 'link-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'scripts'));
  cpSync(IS_MAIN, join(folder, 'scripts/is-main.mjs'));
  writeFileSync(join(folder, 'scripts/program.mjs'), PROGRAM);
  writeFileSync(join(folder, 'scripts/other.mjs'), `import './program.mjs';\n`);
  symlinkSync(join(folder, 'scripts'), join(folder, 'link'));
  expect(execFileSync(process.execPath, [join(folder, started)], { encoding: 'utf8' })).toBe(printed);
});
