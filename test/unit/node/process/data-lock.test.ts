/** The lock of a data folder, while other processes do something at the same moment. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { lockDataDir } from '../../../../src/node/process/data-lock.ts';

/** Called when a file was opened and before it is written, and before a file is read. */
const meanwhile = vi.hoisted(() => ({ opened: (_: string) => {}, toBeRead: (_: string) => {} }));

vi.mock('node:fs', async (importOriginal) => {
  const fs = await importOriginal<typeof import('node:fs')>();
  return {
    ...fs,
    writeFileSync(file: string, text: string, options: { flag?: string; mode?: number } = {}) {
      const fd = fs.openSync(file, options.flag ?? 'w', options.mode);
      meanwhile.opened(file);
      fs.writeSync(fd, text);
      fs.closeSync(fd);
    },
    readFileSync(file: string, encoding: 'utf8') {
      meanwhile.toBeRead(file);
      return fs.readFileSync(file, encoding);
    },
  };
});

let folder: string;
let lock: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'stockade-lock-'));
  lock = join(folder, 'lock');
});

afterEach(() => {
  Object.assign(meanwhile, { opened: () => {}, toBeRead: () => {} });
  rmSync(folder, { recursive: true });
});

test('never stands there without the number of its process: another one would take it for that of a dead process', async () => {
  const { readFileSync, existsSync } = await vi.importActual<typeof import('node:fs')>('node:fs');
  const seen: string[] = [];
  meanwhile.opened = () => {
    if (existsSync(lock)) seen.push(readFileSync(lock, 'utf8'));
  };
  const unlock = lockDataDir(folder);
  expect(seen).toEqual([]);
  expect(readFileSync(lock, 'utf8')).toBe(String(process.pid));
  unlock();
});

test('is free if its process ends in the moment in which another one finds it', () => {
  writeFileSync(lock, String(process.ppid));
  meanwhile.toBeRead = () => {
    meanwhile.toBeRead = () => {};
    rmSync(lock);
  };
  lockDataDir(folder)();
});

test('of a process that lives is respected, and that of a dead one is taken over', () => {
  writeFileSync(lock, String(process.ppid));
  expect(() => lockDataDir(folder)).toThrow(`is in use by process ${process.ppid}`);
  writeFileSync(lock, '');
  lockDataDir(folder)();
});
