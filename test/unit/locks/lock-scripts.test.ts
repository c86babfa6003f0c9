/** What the scripts of locks reply and write. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { luaSource } from '../../../src/engine/redis/protocol/lua-source.ts';
import { fenced } from '../../../src/locks/fenced.ts';
import { NOW_S, NOW_US, runSource, type Stored } from '../../support/engine/run-script.ts';

const source = (name: string) =>
  readFileSync(new URL(`../../../src/locks/lua/${name}.lua`, import.meta.url), 'utf8');

const CLOCK = NOW_S * 1e6 + NOW_US;
const TTL = 30;
const FENCE_TTL = 900;

describe('a lock', () => {
  const acquire = (stored: Stored, from = '') =>
    runSource(source('acquire'), stored, ['lock', 'fence'], ['me', TTL, FENCE_TTL, from]);

  it.each<[string, Stored, string, string, number]>([
    ['that is free', {}, '', '', CLOCK],
    ['that is free again', { fence: '5' }, '', '', CLOCK],
    ['whose newest token is ahead of the clock', { fence: `${CLOCK + 5}` }, '', '', CLOCK + 6],
    ['that its holder passes on', { lock: 'you', fence: '5' }, 'you', 'you', CLOCK],
    ['that its holder would have passed on, but has lost', { fence: '5' }, 'you', '', CLOCK],
    ['of the same owner that has lost its token', { lock: 'me' }, '', 'me', CLOCK],
  ])('%s is acquired with a new token', (_, stored, from, previous, token) => {
    const { reply, written, commands } = acquire(stored, from);
    expect(reply).toEqual(['held', String(token), previous]);
    expect(written).toEqual({ fence: String(token), ...(stored.lock !== 'me' && { lock: 'me' }) });
    expect(commands.slice(-2)).toEqual([`SET fence ${token} PX ${FENCE_TTL}`, `SET lock me PX ${TTL}`]);
  });

  it.each(['', 'you'])('that the owner has already keeps its token, and lasts longer (from %j)', (from) => {
    const { reply, written, commands } = acquire({ lock: 'me', fence: '5' }, from);
    expect([reply, written]).toEqual([['held', '5', from], {}]);
    expect(commands).toEqual(['GET lock', 'GET fence', `PEXPIRE lock ${TTL}`]);
  });

  it.each(['', 'somebody'])('of another owner is refused, with the time that is left (from %j)', (from) => {
    for (const stored of [{ lock: 'you', fence: '5' }, { lock: 'you' }]) {
      const { reply, written, commands } = acquire(stored, from);
      expect([reply, written]).toEqual([['refused', 5000], {}]);
      expect(commands).toEqual(['GET lock', 'GET fence', 'PTTL lock']);
    }
  });

  const renew = (stored: Stored) =>
    runSource(source('renew'), stored, ['lock', 'fence'], ['me', TTL, FENCE_TTL]);

  it('is renewed by its owner, with its fence', () => {
    const { reply, commands } = renew({ lock: 'me', fence: '5' });
    expect(reply).toBe(1);
    expect(commands).toEqual(['GET lock', `PEXPIRE fence ${FENCE_TTL}`, `PEXPIRE lock ${TTL}`]);
  });

  it('is not renewed by another owner, or without its fence', () => {
    for (const stored of [{ lock: 'you', fence: '5' }, { fence: '5' }]) {
      const { reply, commands } = renew(stored);
      expect([reply, commands]).toEqual([0, ['GET lock']]);
    }
    const { reply, commands } = renew({ lock: 'me' });
    expect([reply, commands]).toEqual([0, ['GET lock', `PEXPIRE fence ${FENCE_TTL}`]]);
  });

  const release = (stored: Stored) => runSource(source('release'), stored, ['lock'], ['me', 'waiters']);

  it('is released by its owner, which wakes its waiters', () => {
    const { reply, written, commands } = release({ lock: 'me' });
    expect([reply, written]).toEqual([0, { lock: null }]);
    expect(commands).toEqual(['GET lock', 'DEL lock', 'PUBLISH waiters released']);
  });

  it('is not released by another owner', () => {
    for (const stored of [{ lock: 'you' }, {}]) {
      const { reply, written, commands } = release(stored);
      expect([reply, written, commands]).toEqual([-1, {}, ['GET lock']]);
    }
  });
});

describe('a script under a lock', () => {
  const write = (stored: Stored) =>
    runSource(fenced(luaSource('build/begin-draft')), stored, ['fence', 'draft'], ['5', 'mine', 70]);

  it('runs with the newest token, and has its own keys and arguments', () => {
    const { reply, written, commands } = write({ fence: '5' });
    expect([reply, written]).toEqual([1, { draft: { ' ': 'mine' } }]);
    expect(commands).toEqual(['GET fence', 'UNLINK draft', 'HSET draft   mine', 'PEXPIRE draft 70']);
  });

  it.each([
    ['a newer token', { fence: '6' }, '6'],
    ['no token', {}, 'missing'],
  ])('is refused if the fence has %s', (_, stored, newest) => {
    const { reply, written } = write(stored);
    expect(reply).toBe(`error FENCED token 5 is not the newest, which is ${newest}`);
    expect(written).toEqual({});
  });
});
