/** The rights in the stores are those that the program needs: what it sends is in the lists, and nothing else is. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { TRIED_COMMANDS } from '../../../src/cli/doctor/redis-commands.ts';
import { DELETING_TABLES, FUNCTIONS, TABLE_RIGHTS } from '../../../src/postgres/app-role.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));

function filesBelow(folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => readFileSync(join(root, folder, name), 'utf8'));
}

const sorted = (names: Iterable<string>) => [...new Set(names)].sort();
const all = (texts: readonly string[], pattern: RegExp) =>
  texts.flatMap((text) => [...text.matchAll(pattern)].map((match) => match[1]!));

describe('in Postgres', () => {
  const migrations = filesBelow('src/postgres/migrations', '.sql');
  /** SQL that runs as the app: statements of the program, and bodies of functions. The owner runs the rest of a migration. */
  const statements = [
    ...filesBelow('src', '.ts').filter((text) => !text.includes('TABLE_RIGHTS:')),
    ...all(migrations, /\$\$(.*?)\$\$/gs),
  ];

  test('every table of the migrations is in the list, and nothing else', () => {
    const made = all(migrations, /^CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)/gm);
    expect(Object.keys(TABLE_RIGHTS).sort()).toEqual(sorted([...made, 'stockade_migrations']));
  });

  test('every function of the migrations is in the list, and nothing else', () => {
    expect(sorted(FUNCTIONS)).toEqual(sorted(all(migrations, /^CREATE (?:OR REPLACE )?FUNCTION (\w+)/gm)));
  });

  test('no function of the migrations runs with other rights than its caller’s', () => {
    for (const sql of migrations) expect(sql).not.toMatch(/SECURITY\s+DEFINER/i);
  });

  test.each(Object.entries(TABLE_RIGHTS).filter(([table]) => table !== 'stockade_migrations'))(
    'the statements that use %s, and no others, are granted',
    (table, rights) => {
      const done = [
        ['DELETE', new RegExp(`DELETE FROM (${table})\\b`, 'g')],
        ['INSERT', new RegExp(`INSERT INTO (${table})\\b`, 'g')],
        ['SELECT', new RegExp(`\\b(?:FROM|JOIN) (${table})\\b`, 'g')],
        [
          'UPDATE',
          new RegExp(`UPDATE (${table})\\b|INSERT INTO (${table})\\b(?:(?!INSERT INTO)[^])*?DO UPDATE`, 'g'),
        ],
      ] as const;
      const needed = done.filter(([, pattern]) => all(statements, pattern).length > 0);
      const granted = [...rights, ...(DELETING_TABLES.includes(table) ? ['DELETE'] : [])];
      expect(sorted(granted)).toEqual(needed.map(([right]) => right));
    },
  );
});

describe('in Redis', () => {
  const [, user] = /^user stockade (.*)$/m.exec(readFileSync(join(root, 'deploy/redis-users.acl'), 'utf8'))!;
  const granted = all([user!], /\+([\w|]+)/g);
  /** Commands for connections, subscriptions and the cluster's map, which the client sends by itself. */
  const ofTheClient = [
    ...['asking', 'cluster|info', 'cluster|slots', 'eval', 'evalsha', 'info', 'ping', 'select'],
    ...['subscribe', 'time', 'unsubscribe'],
  ];

  test('the commands of scripts and program, and no others, are granted', () => {
    const inScripts = all(filesBelow('src', '.lua'), /redis\.p?call\(\s*'(\w+)'/g);
    const direct = all(filesBelow('src', '.ts'), /redis\.(get|incr|publish|hincrby|hmget|hscan)\(/g);
    const pipelined = all(filesBelow('src', '.ts'), /\[\s*'(hmget|xrange)',/g);
    const sent = [...inScripts, ...direct, ...pipelined].map((name) =>
      name.toLowerCase().replace('xinfo', 'xinfo|groups'),
    );
    expect(sorted(granted)).toEqual(sorted([...sent, ...ofTheClient]));
  });

  test('doctor tries each of them, except for those that the client sends by itself', () => {
    const untried = granted.filter(
      (name) => !ofTheClient.includes(name) || name === 'subscribe' || name === 'time',
    );
    expect(sorted(TRIED_COMMANDS)).toEqual(sorted(untried.map((name) => name.replace('|groups', ''))));
  });

  test('is not for commands that read or change keys of other programs', () => {
    expect(user).toContain('resetkeys ~stockade:* resetchannels &stockade:* -@all ');
    const forbidden = [
      'acl',
      'client',
      'config',
      'debug',
      'flushall',
      'flushdb',
      'keys',
      'monitor',
      'scan',
      'script',
    ];
    expect(granted.filter((name) => forbidden.includes(name.split('|')[0]!))).toEqual([]);
    expect(user).not.toMatch(/\+@|allkeys|allchannels|allcommands|nopass/);
  });
});
