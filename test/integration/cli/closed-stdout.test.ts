/** The reader of stdout goes before it has all of the output. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { parseSale, saleToJson } from '../../../src/engine/sale/sale-json.ts';
import { answeringNode } from '../../support/cli/answering-node.ts';
import { MAIN } from '../../support/cli/cli.ts';

/** More than a pipe holds. */
const MANY_BYTES = 1_000_000;

/** The ops port of a node whose answers are long. */
function talkativeNode(): Promise<NodeJS.ProcessEnv> {
  const long = 'x'.repeat(MANY_BYTES);
  const sale = { ...saleToJson(parseSale({ id: 'jazz', stock: 5 })), title: long, committedOrders: 1 };
  const orders = [{ orderId: '7', saleId: 'jazz', reference: long }];
  return answeringNode((_, { pathname }) =>
    pathname.includes('/orders') ? { orders } : pathname.endsWith('/draw') ? { long } : sale,
  );
}

/** @returns the exit code, and stderr */
async function readABit(args: readonly string[]): Promise<[number, string]> {
  const env = { PATH: process.env.PATH, ...(await talkativeNode()) };
  const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdout.once('data', () => child.stdout.destroy());
  const [exitCode] = await once(child, 'close');
  return [exitCode as number, stderr];
}

const INCOMPLETE = 'error: the output is not complete: its reader has closed stdout\n';

test.each([
  ['order export jazz', 1, INCOMPLETE],
  ['queue draw jazz', 1, INCOMPLETE],
  ['verify jazz --json', 1, INCOMPLETE],
  ['sale show jazz --json', 0, ''],
  ['order list jazz --json', 0, ''],
])('%s ends with exit code %i', async (command, exitCode, stderr) => {
  expect(await readABit(command.split(' '))).toEqual([exitCode, stderr]);
});
