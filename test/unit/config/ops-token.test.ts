import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findOpsToken, opsToken, opsTokenFile } from '../../../src/config/ops-token.ts';
import { Secret } from '../../../src/config/values/secret.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ops-token-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

const kept = () => ({ opsToken: undefined, dataDir: join(folder, 'data') });

test('OPS_TOKEN is the token, and nothing is written', () => {
  expect(opsToken({ ...kept(), opsToken: new Secret('sixteen-or-more!') })).toBe('sixteen-or-more!');
  expect(readdirSync(folder)).toEqual([]);
});

test('a random one is made once, and only its owner can read it', () => {
  expect(findOpsToken(kept())).toBeUndefined();
  const token = opsToken(kept());
  expect(token.length).toBeGreaterThanOrEqual(32);
  expect(opsToken(kept())).toBe(token);
  expect(findOpsToken(kept())).toBe(token);
  expect(statSync(opsTokenFile(kept())).mode & 0o777).toBe(0o600);
  expect(readdirSync(kept().dataDir)).toEqual(['ops-token']);
});

test('a file that others could read is closed to them', () => {
  opsToken(kept());
  chmodSync(opsTokenFile(kept()), 0o644);
  opsToken(kept());
  expect(statSync(opsTokenFile(kept())).mode & 0o777).toBe(0o600);
});

test('an empty file is no token', () => {
  mkdirSync(kept().dataDir);
  writeFileSync(opsTokenFile(kept()), '\n');
  expect(() => opsToken(kept())).toThrow(/holds no token: delete it/);
});

test('a folder that can not be made is named', () => {
  writeFileSync(kept().dataDir, 'a file, not a folder');
  expect(() => opsToken(kept())).toThrow(/ops-token can't be .*set OPS_TOKEN, or DATA_DIR/);
});
