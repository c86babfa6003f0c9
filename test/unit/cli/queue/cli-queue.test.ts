/** `stockade queue check`: what it prints, and its exit codes. What it finds is in draw-check.test.ts. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { linesOfFile } from '../../../../src/cli/queue/lines-of-file.ts';
import { callCli } from '../../../support/cli/cli.ts';
import { linesOf, type MadeDraw, madeDraw } from '../../../support/queue/drawn-file.ts';

let cwd: string;
let made: MadeDraw;
let lines: string[];

beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'draw-'));
  made = madeDraw(1, 1_200);
  lines = await linesOf(made);
  written('draw.ndjson', lines);
});

afterAll(() => rmSync(cwd, { recursive: true }));

function written(name: string, text: readonly string[]): void {
  writeFileSync(join(cwd, name), text.map((line) => `${line}\n`).join(''));
}

const check = (args: string) => callCli(['queue', 'check', ...args.split(' ')], { cwd });

test('a right file: exit code 0, and what was found', async () => {
  const { commitment, entriesHash } = made;
  expect(await check('draw.ndjson')).toMatchObject({
    exitCode: 0,
    stderr: '',
    stdout: `sale-1: the draw is right, 1,200 numbers
  the seed belongs to the commitment ${commitment}
  the digests have the hash ${entriesHash}
  each rank is where seed and hash put it
Compare the commitment with the one that you saw before the draw, because a file can be made up as a whole.
`,
  });
});

test('a file on the standard input', async () => {
  const stdin = Object.getOwnPropertyDescriptor(process, 'stdin')!;
  onTestFinished(() => void Object.defineProperty(process, 'stdin', stdin));
  Object.defineProperty(process, 'stdin', {
    ...stdin,
    get: () => Readable.from([Buffer.from(lines.join('\n'))]),
  });
  expect(await check('-')).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/^sale-1: the draw is right/),
  });
});

test('with the commitment that was published, there is nothing left to compare', async () => {
  const { exitCode, stdout } = await check(`draw.ndjson --commitment ${made.commitment}`);
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/ {2}the commitment is the one that you gave\n$/);
});

test('numbers that nobody has are counted', async () => {
  written('vacant.ndjson', await linesOf(madeDraw(2, 10, [3, 10])));
  const { exitCode, stdout } = await check('vacant.ndjson');
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/^sale-2: the draw is right, 10 numbers, 2 of them nobody's\n/);
});

test('a wrong file: exit code 1, and each kind of fault with its first place and its number', async () => {
  written('cut.ndjson', [...lines.slice(0, 100), '{"rank":100']);
  expect(await check('cut.ndjson')).toMatchObject({
    exitCode: 1,
    stderr: '',
    stdout: expect.stringMatching(
      /^sale-1: the draw is not proven\n {2}not_json: line 101 is not .*\n {2}missing: number \d+ has no line \(the first of 1,101\)\n$/,
    ),
  });
});

test('what is no such file is named by its name', async () => {
  written('other.txt', ['hello']);
  expect((await check('other.txt')).stdout).toMatch(
    /^other\.txt: the draw is not proven\n {2}not_json: line 1 is not .*this is no file of a draw\n/,
  );
  const folder = await check('.');
  expect(folder.exitCode).not.toBe(0);
  expect(folder.stderr).toContain('That is a folder: name a file in it.');
});

test('--json: one object', async () => {
  const { commitment, entriesHash, seed } = made;
  const right = await check(`draw.ndjson --json --commitment ${commitment}`);
  expect(right.exitCode).toBe(0);
  expect(JSON.parse(right.stdout)).toEqual({
    file: 'draw.ndjson',
    ok: true,
    sale: 'sale-1',
    commitment,
    isCompared: true,
    seed: Buffer.from(seed).toString('hex'),
    entries: 1_200,
    vacant: 0,
    entriesHash,
    faults: [],
  });
  const other = await check(`draw.ndjson --json --commitment ${'0'.repeat(64)}`);
  expect(other.exitCode).toBe(1);
  expect(JSON.parse(other.stdout)).toMatchObject({ ok: false, faults: [{ code: 'published', count: 1 }] });
  written('none.txt', []);
  const none = await check('none.txt --json');
  expect(none.exitCode).toBe(1);
  expect(JSON.parse(none.stdout)).toEqual({
    file: 'none.txt',
    ok: false,
    faults: [{ code: 'header', message: 'the file is empty', count: 1 }],
  });
});

test('it takes no settings: none is in its help, and a wrong one in the environment does not stop it', async () => {
  const { exitCode, stdout } = await callCli(['queue', 'check', '--help'], { cwd });
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/^Examples:\n {2}stockade queue check draw\.ndjson$/m);
  expect(stdout).not.toMatch(/REDIS_URL|DATABASE_URL|--log-level/);
  expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
  const env = { LOG_LEVEL: 'loud', PORT: 'abc' };
  expect(await callCli(['queue', 'check', 'draw.ndjson'], { cwd, env })).toMatchObject({ exitCode: 0 });
});

test('a file that is not there: exit code 1, and its name', async () => {
  const { exitCode, stdout, stderr } = await check('nowhere.ndjson');
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toMatch(/^error: ENOENT: .*nowhere\.ndjson/);
});

test('lines are read whole across blocks, and are cut if they are too long', async () => {
  // A file is read in blocks of 64 KiB.
  const long = 'ä'.repeat(100_000);
  const text = ['', 'é€😀'.repeat(9_000), long, '', 'last'];
  writeFileSync(join(cwd, 'lines.txt'), text.join('\n'));
  const read = async (maxCharacters: number) => {
    const found: string[] = [];
    for await (const line of linesOfFile(join(cwd, 'lines.txt'), maxCharacters)) found.push(line);
    return found;
  };
  expect(await read(100_000)).toEqual(text);
  writeFileSync(join(cwd, 'lines.txt'), `${text.join('\n')}\n`);
  expect(await read(100_000)).toEqual(text);
  const cut = await read(1_000);
  expect(cut.map((line) => line.length > 1_000)).toEqual([false, true, true, false, false]);
  expect(Math.max(...cut.map((line) => line.length))).toBeLessThanOrEqual(4_000);
  expect(cut.at(-1)).toBe('last');
});

test('a file that an editor of Windows has saved is as good', async () => {
  writeFileSync(join(cwd, 'windows.ndjson'), `\ufeff${lines.map((line) => `${line}\r\n`).join('')}`);
  expect(await check('windows.ndjson')).toMatchObject({ exitCode: 0, stderr: '' });
});
