/** The data folder while others change it: a second node that starts, or another user. */
import { chmodSync, lchownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { makeFolderPrivate } from '../../../src/config/private-folder.ts';

/** Events beside the product's calls; each happens once. */
const beside = vi.hoisted(() => ({ afterListing: () => {}, beforeClosing: () => {} }));

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const once = (name: keyof typeof beside) => {
    const happen = beside[name];
    beside[name] = () => {};
    happen();
  };
  return {
    ...fs,
    readdirSync: (path: string) => {
      const names = fs.readdirSync(path);
      once('afterListing');
      return names;
    },
    chmodSync: (path: string, mode: number) => {
      once('beforeClosing');
      fs.chmodSync(path, mode);
    },
  };
});

const STRANGER = 54_321;
let folder: string;

beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'private-')), 'data');
  mkdirSync(folder, { mode: 0o700 });
});

afterEach(() => rmSync(join(folder, '..'), { recursive: true }));

test('a draft that another node removes meanwhile is no error', () => {
  const draft = join(folder, 'ops-token.1.abcd');
  writeFileSync(draft, '');
  beside.afterListing = () => rmSync(draft);
  expect(makeFolderPrivate(folder)).toBeUndefined();
  expect(readdirSync(folder)).toEqual([]);
});

test.runIf(process.getuid?.() === 0)(
  'a file that another user adds just before it is closed is noticed',
  () => {
    chmodSync(folder, 0o777);
    const token = join(folder, 'ops-token');
    beside.beforeClosing = () => {
      writeFileSync(token, 'a-token-that-i-know\n');
      lchownSync(token, STRANGER, STRANGER);
    };
    expect(() => makeFolderPrivate(folder)).toThrow(/ops-token belongs to another user/);
  },
);
