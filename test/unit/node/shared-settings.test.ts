import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../../src/config/load-config.ts';
import { settingNames, settings } from '../../../src/config/settings.ts';
import {
  differencesTo,
  settingDigests,
  settingsOfNode,
  settingsOfSync,
} from '../../../src/node/stores/shared-settings.ts';

const KEY = new Uint8Array(32).fill(1);
const SECRET = 'a secret of thirty-two characters';

const digestsOf = (env: Record<string, string>, key = KEY) => {
  const config = loadConfig(env, {});
  return settingDigests(config, settingsOfNode(config), key);
};

describe('digests', () => {
  test('exist for every shared setting, and reveal no value', () => {
    const told = digestsOf({ PURCHASE_TOKEN_SECRET: SECRET, RATE_LIMIT_BUYER: '10/60' });
    const shared = settingNames.filter((name) => settings[name].shared !== undefined);
    expect(Object.keys(told).sort()).toEqual(shared.map((name) => settings[name].env).sort());
    expect(JSON.stringify(told)).not.toMatch(/a secret|10\/60/);
    for (const digest of Object.values(told)) expect(digest).toMatch(/^[\w-]{22}$/);
  });

  test('are the same for the same value, and others for another value, key or setting', () => {
    const told = digestsOf({ PURCHASE_TOKEN_SECRET: SECRET });
    expect(digestsOf({ PURCHASE_TOKEN_SECRET: SECRET })).toEqual(told);
    const { PURCHASE_TOKEN_SECRET: own, ...rest } = told;
    const { PURCHASE_TOKEN_SECRET: other, ...sameRest } = digestsOf({ PURCHASE_TOKEN_SECRET: `${SECRET}!` });
    expect(other).not.toBe(own);
    expect(sameRest).toEqual(rest);
    expect(digestsOf({ PURCHASE_TOKEN_SECRET: SECRET }, new Uint8Array(32))).not.toEqual(told);
    expect(digestsOf({ PURCHASE_TOKEN_OTHER_SECRET: SECRET }).PURCHASE_TOKEN_OTHER_SECRET).not.toBe(own);
  });

  test('of a module depend on the content of its file, not on its path', () => {
    const folder = mkdtempSync(join(tmpdir(), 'stockade-shared-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const [a, b] = [join(folder, 'a.mjs'), join(folder, 'b.mjs')];
    for (const file of [a, b]) writeFileSync(file, 'export const issue = 1;');
    expect(digestsOf({ CHALLENGE: a })).toEqual(digestsOf({ CHALLENGE: b }));
    writeFileSync(b, 'export const issue = 2;');
    expect(digestsOf({ CHALLENGE: a }).CHALLENGE).not.toBe(digestsOf({ CHALLENGE: b }).CHALLENGE);
    expect(digestsOf({ CHALLENGE: 'pow' }).CHALLENGE).not.toBe(digestsOf({}).CHALLENGE);
  });

  test('of the webhook tell a program’s own handler from a URL, and from neither', () => {
    const config = loadConfig({}, {});
    const told = (handlesEvents: boolean) =>
      settingDigests(config, settingsOfNode(config), KEY, handlesEvents).WEBHOOK_URL;
    const { WEBHOOK_URL: url } = digestsOf({ WEBHOOK_URL: 'http://localhost', WEBHOOK_SECRET: SECRET });
    expect(new Set([told(true), told(false), url]).size).toBe(3);
    expect(told(true)).toBe(told(true));
  });

  test('of events are compared only among processes that send events', () => {
    const node = loadConfig({ REDIS_URL: 'redis://here', SYNC: 'off' }, {});
    expect(settingsOfNode(node)).not.toContain('webhookUrl');
    expect(settingsOfNode(node, ['strategy', 'webhookUrl'])).toEqual(['strategy']);
    expect(settingsOfSync()).toContain('webhookUrl');
    expect(settingsOfSync()).not.toContain('challenge');
  });
});

describe('differences', () => {
  const running = (process: string, settings: Record<string, string>) => ({
    process,
    version: '1',
    settings,
  });

  test('name the setting, the processes with another value, and how many others have it', () => {
    const others = [
      running('same', { CHALLENGE: 'x', STRATEGY: 'y' }),
      running('other', { CHALLENGE: 'z', STRATEGY: 'y' }),
      running('older', { STRATEGY: 'y' }),
    ];
    expect(differencesTo({ CHALLENGE: 'x', STRATEGY: 'y', NEW: 'n' }, others)).toEqual([
      { setting: 'CHALLENGE', processes: [others[1]], of: 2 },
    ]);
  });

  test('are none without others', () => {
    expect(differencesTo({ CHALLENGE: 'x' }, [])).toEqual([]);
  });
});

test('docs/configuration.md lists the shared settings, and no other', () => {
  const file = fileURLToPath(new URL('../../../docs/configuration.md', import.meta.url));
  const [, section] = /^## Shared settings\n(.*?)^`REDIS_URL`/ms.exec(readFileSync(file, 'utf8'))!;
  const listed = [...section!.matchAll(/`([A-Z_]+)`/g)].map((match) => match[1]!);
  const shared = settingNames.filter((name) => settings[name].shared !== undefined);
  expect(listed.sort()).toEqual(shared.map((name) => settings[name].env).sort());
});
