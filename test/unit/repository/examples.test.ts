/** The programs below docs/examples/, as a reader runs them. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SOLVER = fileURLToPath(new URL('../../../docs/examples/solve-pow.mjs', import.meta.url));

test.each([
  ['', 'nothing'],
  ['<html>Bad gateway</html>', '<html>Bad gateway</html>'],
  ['null', 'null'],
  ['{"code":"unknown_sale"}', '{"code":"unknown_sale"}'],
])('solve-pow says in a sentence that there is no challenge in %j', (input, found) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [SOLVER], { input, encoding: 'utf8' });
  expect({ status, stdout, stderr }).toEqual({
    status: 1,
    stdout: '',
    stderr: `There is no challenge of proof of work on stdin, but: ${found}\n`,
  });
});
