/** The programs below docs/examples/, as a reader runs them; and what those in examples/ say to buyers. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { kindOf, type ProblemCode } from '../../../src/http/server/replies/problem-kinds.ts';

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

test('the servers of the examples answer each outcome of a purchase with the status of the API', async () => {
  // Its types come from the built package, which need not be built here.
  const { STATUSES } = await import(new URL('../../../examples/status.ts', import.meta.url).href);
  const { committed, accepted, ...refusals } = STATUSES as Record<string, number>;
  expect({ committed, accepted }).toEqual({ committed: 201, accepted: 202 });
  const codes = Object.keys(refusals) as ProblemCode[];
  expect(codes).toEqual(expect.arrayContaining(['sold_out', 'unavailable', 'unknown', 'unknown_sale']));
  expect(refusals).toEqual(Object.fromEntries(codes.map((code) => [code, kindOf(code).status])));
});
