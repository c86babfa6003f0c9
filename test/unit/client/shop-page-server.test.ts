/** The server of the example of a shop's page: who it takes a visitor for. And what examples say that lack a variable. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
// @ts-expect-error The example is JavaScript.
import { createShop } from '../../../examples/shop-page/server.js';

describe("the server of the example of a shop's page", () => {
  const secret = 'a secret of more than thirty-two characters';
  const shop = createShop({ jwtSecret: secret, client: new URL('file:///nowhere/') }) as Server;
  const session = async (cookie?: string) => {
    const { port } = shop.address() as AddressInfo;
    const headers = cookie === undefined ? {} : { cookie };
    const answer = await fetch(`http://127.0.0.1:${port}/session`, { method: 'POST', headers });
    const told = (await answer.json()) as { token: string; buyerId: string; isNew: boolean };
    const { token, buyerId, isNew } = told;
    const { sub } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString());
    expect(buyerId).toBe(sub);
    return { buyer: sub as string, isNew, cookie: answer.headers.get('set-cookie')!.split(';')[0]! };
  };

  beforeAll(() => new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve)));
  afterAll(() => new Promise((resolve) => shop.close(resolve)));

  test('knows a browser again by its cookie, and by nothing that a visitor can write', async () => {
    const first = await session();
    expect(first.isNew).toBe(true);
    expect(await session(first.cookie)).toMatchObject({ buyer: first.buyer, isNew: false });
    expect(await session(`other=1; ${first.cookie}`)).toMatchObject({ buyer: first.buyer, isNew: false });
    const mac = first.cookie.split('.')[1] ?? '';
    const victim = '00000000-0000-4000-8000-000000000000';
    for (const cookie of [
      `buyer=${first.buyer}`,
      `buyer=${victim}`,
      `buyer=${victim}.${mac}`,
      `buyer=${first.buyer}.${'A'.repeat(43)}`,
      `buyer=${first.buyer}.`,
      `${first.cookie}x`,
    ]) {
      const visit = await session(cookie);
      expect(visit, cookie).toMatchObject({ isNew: true });
      expect([victim, first.buyer]).not.toContain(visit.buyer);
    }
  });
});

test.each([['refnd', '7'], ['refund'], ['refund', '7', '8'], ['--help']])(
  'the example of payments refuses the command %j, and does not start its server',
  (...args) => {
    const main = fileURLToPath(new URL('../../../examples/payment/main.js', import.meta.url));
    const env = { OPS_TOKEN: 'a-secret-of-16-characters', PROVIDER_KEY: 'sk', WEBHOOK_SECRET: 'whsec' };
    const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
      env: { ...env, PORT: '0' },
      encoding: 'utf8',
      timeout: 20_000,
    });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/^Use: node main\.js, .* refund <order>/);
  },
);

describe('an example that is started by another name', () => {
  const folder = mkdtempSync(join(tmpdir(), 'stockade-examples-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const examples = fileURLToPath(new URL('../../../examples', import.meta.url));
  symlinkSync(examples, join(folder, 'linked'));
  symlinkSync(join(examples, 'shop-page/server.js'), join(folder, 'server.js'));
  symlinkSync(join(examples, 'payment/stand-in.js'), join(folder, 'stand-in.js'));

  test.each(['linked/shop-page/server.js', 'server.js', 'linked/shop-page/server'])('%s starts', (name) => {
    const { stderr } = spawnSync(process.execPath, [join(folder, name)], { env: {}, encoding: 'utf8' });
    expect(stderr).toBe('OPS_TOKEN and JWT_SECRET are missing.\n');
  });

  test.each(['linked/payment/stand-in.js', 'stand-in.js', 'linked/payment/stand-in'])(
    '%s starts',
    async (name) => {
      const program = spawn(process.execPath, [join(folder, name)], { env: { PORT: '0' } });
      const ended = once(program, 'exit');
      const [said] = await Promise.race([once(program.stdout, 'data'), ended.then(() => ['nothing'])]);
      program.kill();
      await ended;
      expect(String(said)).toMatch(/^http/);
    },
  );

  test('it does not start if another program imports it', async () => {
    const url = new URL('../../../examples/payment/stand-in.js', import.meta.url).href;
    const program = ['--input-type=module', '-e', `await import('${url}')`, 'an-argument'];
    const { status, stdout, stderr } = spawnSync(process.execPath, program, { env: {}, encoding: 'utf8' });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
  });
});

describe('an example that is started without what it needs', () => {
  test.each([
    ['shop-page/server.js', {}, 'OPS_TOKEN and JWT_SECRET are missing'],
    ['shop-page/server.js', { OPS_TOKEN: 'a-token-of-some-length' }, 'JWT_SECRET is missing'],
    [
      'payment/main.js',
      { OPS_TOKEN: 'a-token-of-some-length' },
      'PROVIDER_KEY and WEBHOOK_SECRET are missing',
    ],
  ])('%s with %j ends with a sentence', (program, env, message) => {
    const file = fileURLToPath(new URL(`../../../examples/${program}`, import.meta.url));
    // A server that starts all the same is ended: then it has no status.
    const { status, stderr } = spawnSync(process.execPath, [file], {
      env: { ...env, PORT: '0' },
      encoding: 'utf8',
      timeout: 10_000,
    });
    expect({ status, stderr }).toEqual({ status: 1, stderr: `${message}.\n` });
  });
});
