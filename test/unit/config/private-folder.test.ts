/** Only its owner may enter the data folder, because any user may read the files that PGlite writes there. */
import {
  chmodSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { dataDir } from '../../../src/cli/doctor/runtime.ts';
import { loadConfig } from '../../../src/config/load-config.ts';
import { opsToken } from '../../../src/config/ops-token.ts';
import { FolderNotPrivate, makeFolderPrivate } from '../../../src/config/private-folder.ts';
import { lockDataDir } from '../../../src/node/process/data-lock.ts';

const STRANGER = 54_321;
const mayGiveAway = process.getuid?.() === 0;
let base: string;
let folder: string;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'private-'));
  folder = join(base, 'data');
});

afterEach(() => rmSync(base, { recursive: true }));

const modeOf = (path: string) => statSync(path).mode & 0o777;

function open(mode: number, ...files: string[]): void {
  mkdirSync(folder);
  for (const file of files) writeFileSync(join(folder, file), '');
  chmodSync(folder, mode);
}

const doctor = () => dataDir(loadConfig({ DATA_DIR: folder }, {})).status;

describe.runIf(process.platform !== 'win32')('a data folder', () => {
  test('is created for its owner alone, and so are missing folders above it', () => {
    folder = join(base, 'above', 'data');
    const umask = process.umask(0);
    try {
      expect(makeFolderPrivate(folder)).toBeUndefined();
    } finally {
      process.umask(umask);
    }
    expect([modeOf(folder), modeOf(join(base, 'above'))]).toEqual([0o700, 0o700]);
  });

  test.each<[string, (config: { opsToken: undefined; dataDir: string }) => unknown]>([
    ['its lock', async ({ dataDir: path }) => (await lockDataDir(path))()],
    ['the token of operators', opsToken],
  ])('is closed before %s is written into it', async (_, write) => {
    open(0o777, 'ops-token-draft', 'pglite');
    expect(doctor()).toBe('warn');
    await write({ opsToken: undefined, dataDir: folder });
    expect(modeOf(folder)).toBe(0o700);
    expect(doctor()).toBe('ok');
  });

  test('returns its former mode when it is closed, and nothing the next time', () => {
    open(0o755, 'lock');
    expect(makeFolderPrivate(folder)).toBe(0o755);
    expect(makeFolderPrivate(folder)).toBeUndefined();
  });

  test.each([
    ['holds other things', 0o755, ['lock', 'letter.txt']],
    ['is for everybody, as /tmp', 0o1777, []],
  ])('is neither closed nor used if it %s', (_, mode, files) => {
    open(mode, ...files);
    expect(() => makeFolderPrivate(folder)).toThrow(/does not hold Stockade's data alone: set DATA_DIR to/);
    expect(statSync(folder).mode & 0o7777).toBe(mode);
    expect(doctor()).toBe('fail');
  });

  test('may be a link of its owner', () => {
    open(0o700);
    symlinkSync(folder, join(base, 'link'));
    expect(makeFolderPrivate(join(base, 'link'))).toBeUndefined();
  });

  test('may hold other files of its owner if it is closed', () => {
    open(0o700, 'letter.txt');
    expect(makeFolderPrivate(folder)).toBeUndefined();
  });
});

describe.runIf(mayGiveAway)('what another user has made in its place', () => {
  const refused = () => {
    expect(() => makeFolderPrivate(folder)).toThrow(FolderNotPrivate);
    expect(() => opsToken({ opsToken: undefined, dataDir: folder })).toThrow(String(STRANGER));
    expect(doctor()).toBe('fail');
  };

  test('is refused if it is the folder', () => {
    open(0o700);
    lchownSync(folder, STRANGER, STRANGER);
    refused();
  });

  test('is refused if it is a link', () => {
    mkdirSync(join(base, 'elsewhere'), { mode: 0o700 });
    symlinkSync(join(base, 'elsewhere'), folder);
    lchownSync(folder, STRANGER, STRANGER);
    refused();
  });

  test('is refused if it is the token of the ops port', () => {
    open(0o700, 'ops-token');
    writeFileSync(join(folder, 'ops-token'), 'a-token-that-i-know\n');
    lchownSync(join(folder, 'ops-token'), STRANGER, STRANGER);
    expect(() => opsToken({ opsToken: undefined, dataDir: folder })).toThrow(
      /ops-token belongs to another user/,
    );
    expect(doctor()).toBe('fail');
  });
});
