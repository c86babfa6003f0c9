/** Admission at the public port: rate limits, purchase tokens, challenges. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { BY } from '../../support/author.ts';
import { until } from '../../support/fixtures.ts';
import { RawConnection, rawRequest } from '../../support/http/raw-http.ts';
import { type Answer, startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { expectSold, onEachStore, redisAndPostgres } from '../../support/nodes/stores.ts';
import { isRelease } from '../../support/tier.ts';

const HOUR_MS = 3_600_000;
/** Workers learn of a changed sale one by one, so there is only one. */
const ONE_WORKER = { WORKERS: '1' };
const SOLVER = fileURLToPath(new URL('../../../docs/examples/solve-pow.mjs', import.meta.url));

const askToken = (node: TestNode, saleId: string, buyer: string, body?: unknown): Promise<Answer> =>
  node.request(`/v1/sales/${saleId}/tokens`, {
    method: 'POST',
    headers: { 'x-buyer-id': buyer },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

async function tokenOf(node: TestNode, saleId: string, buyer: string): Promise<string> {
  const answer = await askToken(node, saleId, buyer);
  expect(answer).toMatchObject({ status: 201, body: { saleId } });
  return answer.body.token;
}

const withToken = (token: string, more: { key?: string } = {}) => ({
  headers: { 'purchase-token': token },
  ...more,
});

const metric = async (node: TestNode, line: string): Promise<number> => {
  const { body } = await node.opsRequest('/metrics');
  const found = (body as string).split('\n').find((text) => text.startsWith(`${line} `));
  return Number(found?.slice(line.length + 1) ?? 0);
};

onEachStore((stage) => {
  describe('a sale that requires a token', () => {
    test('sells only with the buyer’s own token; other tokens are refused with the reason', async () => {
      const { node } = stage;
      const id = await stage.sale({ requireToken: true });
      const other = await stage.sale({ requireToken: true });
      const token = await tokenOf(node, id, 'ann');

      expect(await node.buy(id, 'ann')).toMatchObject({
        status: 403,
        code: 'token_required',
        body: { detail: expect.stringContaining('/tokens') },
      });
      expect(await node.buy(id, 'ann', { key: 'k' })).toMatchObject({ status: 403, code: 'token_required' });
      const alien = { status: 403, code: 'token_invalid', body: { reason: 'alien' } };
      expect(await node.buy(id, 'bob', withToken(token))).toMatchObject(alien);
      expect(await node.buy(other, 'ann', withToken(token))).toMatchObject(alien);
      expect(await node.buy(id, 'ann', withToken('nonsense', { key: 'k' }))).toMatchObject(alien);

      expect(await node.buy(id, 'ann', withToken(token))).toMatchObject({ status: 201, code: 'committed' });
      // A token is a permission to buy, not to buy once: the sale's limit per buyer applies.
      expect(await node.buy(id, 'ann', withToken(token))).toMatchObject({ code: 'limit_reached' });
      expect((await node.request(`/v1/sales/${id}`)).body).toMatchObject({ requireToken: true });
      await expectSold(node, id, 1);
    });

    test('issues no tokens before its window opens, nor for an unknown sale', async () => {
      const { node } = stage;
      const startsAt = new Date(Date.now() + HOUR_MS).toISOString();
      const id = await stage.sale({ requireToken: true, startsAt });
      expect(await askToken(node, id, 'ann')).toMatchObject({
        status: 403,
        code: 'not_started',
        body: { startsAt },
      });
      expect(await node.buy(id, 'ann')).toMatchObject({ code: 'not_started' });
      expect(await askToken(node, 'nothing', 'ann')).toMatchObject({ status: 404, code: 'unknown_sale' });
      expect(await askToken(node, '-', 'ann')).toMatchObject({ status: 404, code: 'unknown_sale' });
      expect(await askToken(node, id, '')).toMatchObject({ status: 401, code: 'unauthenticated' });
      expect(await askToken(node, id, 'ann', { more: 1 })).toMatchObject({ code: 'invalid_request' });
      expect(await askToken(node, id, 'ann', [1])).toMatchObject({ code: 'invalid_request' });
    });

    test('answers `sold_out` without a token, and finds the order of a key with one', async () => {
      const { node } = stage;
      const id = await stage.sale({ requireToken: true, stock: 1 });
      const token = await tokenOf(node, id, 'ann');
      const bought = await node.buy(id, 'ann', withToken(token, { key: 'click' }));
      expect(bought).toMatchObject({ status: 201 });
      const bobs = await tokenOf(node, id, 'bob');
      expect(await node.buy(id, 'bob', withToken(bobs))).toMatchObject({ code: 'sold_out' });
      await until(async () => (await node.buy(id, 'cleo')).code === 'sold_out', { what: 'a closed board' });
      expect(await node.buy(id, 'ann', withToken(token, { key: 'click' }))).toMatchObject({
        status: 201,
        body: bought.body,
      });
      await expectSold(node, id, 1);
    });

    test('may begin and stop to require tokens while it sells, and the ledger has both changes', async () => {
      const { node } = stage;
      const id = await stage.sale();
      expect(await node.buy(id, 'ann')).toMatchObject({ status: 201 });
      expect(await node.ops.change(id, { action: 'require-token', requireToken: true }, BY)).toMatchObject({
        requireToken: true,
      });
      await until(async () => (await node.buy(id, 'bob')).code === 'token_required', {
        what: 'tokens are required',
      });
      const token = await tokenOf(node, id, 'cleo');
      expect(await node.buy(id, 'cleo', withToken(token))).toMatchObject({ status: 201 });
      await node.ops.change(id, { action: 'require-token', requireToken: true }, BY);
      await node.ops.change(id, { action: 'require-token', requireToken: false }, BY);
      const open = { what: 'no token is required' };
      await until(async () => (await node.buy(id, 'dan', { key: 'until-sold' })).status === 201, open);
      expect((await node.ops.ledger(id)).ledger).toMatchObject([
        { action: 'create' },
        { action: 'require-token', detail: { from: false, to: true }, applied: true },
        { action: 'require-token', detail: { from: true, to: false }, applied: true },
      ]);
      await node.ops.change(id, { action: 'close' }, BY);
      await expect(
        node.ops.change(id, { action: 'require-token', requireToken: true }, BY),
      ).rejects.toMatchObject({ code: 'wrong_state' });
    });

    test('needs new tokens after a rebuild, and knows the orders bought with old ones', async () => {
      const { node } = stage;
      const id = await stage.sale({ requireToken: true });
      const [anns, bobs] = [await tokenOf(node, id, 'ann'), await tokenOf(node, id, 'bob')];
      const bought = await node.buy(id, 'ann', withToken(anns, { key: 'click' }));
      expect(bought).toMatchObject({ status: 201 });
      await node.ops.change(id, { action: 'resize', segments: 3 }, BY);

      const old = { status: 403, code: 'token_invalid', body: { reason: 'generation' } };
      // Until the node knows of the rebuild, an old token still buys. Ann has reached her limit, so she asks and buys nothing.
      await until(async () => (await node.buy(id, 'ann', withToken(anns))).body.reason === 'generation', {
        what: 'the node knows the new generation',
      });
      expect(await node.buy(id, 'bob', withToken(bobs, { key: 'late' }))).toMatchObject(old);
      expect(await node.buy(id, 'bob', withToken(bobs))).toMatchObject(old);
      expect(await node.buy(id, 'ann', withToken(anns, { key: 'click' }))).toMatchObject({
        status: 201,
        body: bought.body,
      });
      const another = await tokenOf(node, id, 'bob');
      expect(await node.buy(id, 'bob', withToken(another))).toMatchObject({ status: 201 });
      await expectSold(node, id, 2);
    });
  });

  test('requests for tokens are counted by outcome', async () => {
    const { node } = stage;
    const id = await stage.sale({ requireToken: true });
    const issued = 'stockade_purchase_tokens_total{outcome="issued"}';
    const before = await metric(node, issued);
    await tokenOf(node, id, 'ann');
    expect(await metric(node, issued)).toBe(before + 1);
  });
}, ONE_WORKER);

test('a token expires, and a repeated purchase is answered nevertheless', async () => {
  await using node = await startTestNode({
    ...(await redisAndPostgres()),
    env: { PURCHASE_TOKEN_TTL_SECONDS: '1' },
  });
  await node.ops.create({ id: 'tickets', stock: 10, segments: 2, requireToken: true }, BY.actor);
  // A token expires at a full second, and the one in which it is issued may be nearly over.
  let token = '';
  const bought = await until(
    async () => {
      token = await tokenOf(node, 'tickets', 'ann');
      const answer = await node.buy('tickets', 'ann', withToken(token, { key: 'click' }));
      return answer.status === 201 ? answer : undefined;
    },
    { what: 'a purchase within a second' },
  );
  await until(async () => (await node.buy('tickets', 'ann', withToken(token))).body.reason === 'expired', {
    what: 'the end of the token',
  });
  expect(await node.buy('tickets', 'ann', withToken(token, { key: 'click' }))).toMatchObject({
    status: 201,
    body: bought!.body,
  });
  expect(await node.buy('tickets', 'ann', withToken(token, { key: 'other' }))).toMatchObject({
    status: 403,
    body: { code: 'token_invalid', reason: 'expired' },
  });
});

if (isRelease) {
  test('nodes with one database accept each other’s tokens, and so do nodes with the same secret', async () => {
    const stores = await redisAndPostgres();
    const [SECRET, NEXT] = ['s'.repeat(32), 't'.repeat(32)];
    await using one = await startTestNode(stores);
    await using two = await startTestNode(stores);
    await one.ops.create({ id: 'tickets', stock: 10, segments: 2, requireToken: true }, BY.actor);
    const anns = await tokenOf(one, 'tickets', 'ann');
    expect(await two.buy('tickets', 'ann', withToken(anns))).toMatchObject({ status: 201 });

    // The key in Postgres is given up in two steps: first every node learns the new one, then every node signs with it.
    await two.stop();
    await two.start({ PURCHASE_TOKEN_SECRET: SECRET });
    const [bobs, cleos] = [await tokenOf(two, 'tickets', 'bob'), await tokenOf(one, 'tickets', 'cleo')];
    expect(await one.buy('tickets', 'bob', withToken(bobs))).toMatchObject({ code: 'token_invalid' });
    expect(await two.buy('tickets', 'cleo', withToken(cleos))).toMatchObject({ status: 201 });
    await one.stop();
    await one.start({ PURCHASE_TOKEN_OTHER_SECRET: SECRET });
    expect(await one.buy('tickets', 'bob', withToken(bobs))).toMatchObject({ status: 201 });
    const dans = await tokenOf(one, 'tickets', 'dan');
    expect(await two.buy('tickets', 'dan', withToken(dans))).toMatchObject({ status: 201 });

    const eves = await tokenOf(two, 'tickets', 'eve');
    await one.stop();
    await one.start({ PURCHASE_TOKEN_SECRET: NEXT, PURCHASE_TOKEN_OTHER_SECRET: SECRET });
    expect(await one.buy('tickets', 'eve', withToken(eves))).toMatchObject({ status: 201 });
  });
}

describe('rate limits', () => {
  const codesOf = (answers: readonly Answer[], code: string) =>
    answers.filter((answer) => answer.code === code).length;

  test('two workers of a node share one limit for a buyer', async () => {
    const env = { WORKERS: '2', RATE_LIMIT_BUYER: '20/86400' };
    await using node = await startTestNode({ ...(await redisAndPostgres()), env });
    await node.ops.create({ id: 'tickets', stock: 100, segments: 2, perBuyerLimit: 100 }, BY.actor);
    // A connection belongs to one worker. With many connections, both workers have some.
    const buy = rawRequest('POST', '/v1/sales/tickets/orders', { 'X-Buyer-Id': 'ann' });
    const buyOnce = async () => {
      using connection = await RawConnection.open(node.publicUrl);
      await connection.send(buy);
      return (await connection.answer())!;
    };
    // Alone, because two workers that see a buyer for the first time at the same moment may each let a request in.
    const first = await buyOnce();
    const answers = [first, ...(await Promise.all(Array.from({ length: 59 }, buyOnce)))];
    expect(codesOf(answers, 'committed')).toBe(20);
    expect(codesOf(answers, 'rate_limited')).toBe(40);
    const refused = answers.find(({ code }) => code === 'rate_limited')!;
    expect(refused).toMatchObject({
      status: 429,
      headers: { 'content-type': 'application/problem+json' },
      body: { title: 'Too many requests', limitOf: 'buyer' },
    });
    expect(refused.headers['ratelimit-policy']).toBe('"buyer";q=20;w=86400');
    const waitS = Number(refused.headers['retry-after']);
    expect(waitS).toBeGreaterThan(4_000);
    expect(waitS).toBeLessThanOrEqual(4_320);
    expect(refused.headers.ratelimit).toBe(`"buyer";r=0;t=${waitS}`);
    expect(await node.buy('tickets', 'bob')).toMatchObject({ status: 201 });
    expect(await node.request('/v1/orders/1', { headers: { 'x-buyer-id': 'ann' } })).toMatchObject({
      code: 'rate_limited',
    });
    expect(await askToken(node, 'tickets', 'ann')).toMatchObject({ code: 'rate_limited' });
    expect((await node.request('/v1/sales/tickets')).status).toBe(200);
    expect(await metric(node, 'stockade_rate_limited_total{limit="buyer"}')).toBe(42);
    expect(await node.ops.verify('tickets')).toMatchObject({ ok: true, committedOrders: 21 });
  });

  test('an address is refused before any other check, on every public route', async () => {
    await using node = await startTestNode({
      ...(await redisAndPostgres()),
      env: { RATE_LIMIT_ADDRESS: '3/86400' },
    });
    await node.ops.create({ id: 'tickets', stock: 100, segments: 2 }, BY.actor);
    expect(await node.buy('tickets', 'ann')).toMatchObject({ status: 201 });
    expect((await node.request('/v1/sales/tickets')).status).toBe(200);
    expect(await node.buy('tickets', '')).toMatchObject({ status: 401 });
    const limited = { status: 429, code: 'rate_limited', body: { limitOf: 'address' } };
    expect(await node.buy('tickets', 'bob')).toMatchObject(limited);
    expect(await node.buy('tickets', '')).toMatchObject(limited);
    expect(await node.request('/v1/sales/tickets')).toMatchObject(limited);
    expect(await node.request('/v1/orders/1/cancel', { method: 'POST', body: '{' })).toMatchObject(limited);
    expect(await node.request('/nowhere')).toMatchObject(limited);
    expect(await node.request('/v1/sales/tickets', { method: 'PATCH' })).toMatchObject(limited);
    // Without TRUSTED_PROXIES the header of a client is ignored.
    const headers = { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.1' };
    expect(await node.buy('tickets', 'bob', { headers })).toMatchObject(limited);
    // The answer comes before the body has arrived. The connection can be used for the next request.
    using connection = await RawConnection.open(node.publicUrl);
    const long = rawRequest('POST', '/v1/sales/tickets/orders', {}, 'x'.repeat(100_000));
    await connection.send(long.slice(0, 1_000));
    expect(await connection.answer()).toMatchObject(limited);
    await connection.send(long.slice(1_000) + rawRequest('GET', '/v1/sales/tickets'));
    expect(await connection.answer()).toMatchObject(limited);
    expect((await node.ops.show('tickets')).committedOrders).toBe(1);
    expect(await metric(node, 'stockade_rate_limited_total{limit="address"}')).toBe(9);
  });

  if (isRelease) {
    test('behind a proxy, the address is the last one in the header', async () => {
      const env = { RATE_LIMIT_ADDRESS: '1/86400', TRUSTED_PROXIES: '127.0.0.0/8' };
      await using node = await startTestNode({ ...(await redisAndPostgres()), env });
      const look = async (...forwarded: string[]) => {
        using connection = await RawConnection.open(node.publicUrl);
        const lines = forwarded.map((value) => `X-Forwarded-For: ${value}\r\n`).join('');
        await connection.send(`GET /v1/sales/none HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n`);
        return (await connection.answer())!.status;
      };
      expect(await look('192.0.2.1')).toBe(404);
      expect(await look('192.0.2.1')).toBe(429);
      expect(await look('192.0.2.2, 192.0.2.1')).toBe(429);
      // A proxy may add its own header after the client's.
      expect(await look('192.0.2.3', '192.0.2.1')).toBe(429);
      expect(await look('192.0.2.1', '192.0.2.4')).toBe(404);
      expect(await look('2001:db8::1')).toBe(404);
      expect(await look('2001:db8::2')).toBe(429);
    });

    test('all IPv6 networks of one site together may send as much as 64 of them', async () => {
      const env = { RATE_LIMIT_ADDRESS: '1/86400', TRUSTED_PROXIES: '127.0.0.0/8', WORKERS: '1' };
      await using node = await startTestNode({ ...(await redisAndPostgres()), env });
      using connection = await RawConnection.open(node.publicUrl);
      const look = async (address: string) => {
        await connection.send(rawRequest('GET', '/v1/sales/none', { 'X-Forwarded-For': address }));
        return (await connection.answer())!;
      };
      for (let network = 1; network <= 64; network++) {
        expect((await look(`2001:db8:0:${network}::1`)).status).toBe(404);
      }
      expect(await look('2001:db8:0:65::1')).toMatchObject({
        status: 429,
        headers: { 'ratelimit-policy': '"address";q=64;w=86400' },
        body: { limitOf: 'address', detail: expect.stringContaining('one network of 48 bits') },
      });
      expect((await look('2001:db8:1::1')).status).toBe(404);
      expect((await look('192.0.2.1')).status).toBe(404);
      expect(await metric(node, 'stockade_rate_limited_total{limit="address"}')).toBe(1);
    });
  }

  /** An address of this machine other than the loopback, whose connections are never counted. */
  const own = Object.values(networkInterfaces())
    .flat()
    .find((found) => found?.family === 'IPv4' && !found.internal)?.address;

  if (isRelease) {
    test.skipIf(own === undefined)(
      'an address may open a limited number of connections, and the loopback any number',
      async () => {
        const env = {
          ...{ HOST: '0.0.0.0', TRUST_BUYER_HEADER: '1', WORKERS: '2' },
          ...{ RATE_LIMIT_CONNECTIONS: '1/86400/4', TRUSTED_PROXIES: '192.0.2.1' },
        };
        await using node = await startTestNode({ ...(await redisAndPostgres()), env });
        const { port } = new URL(node.publicUrl);
        const refused = 'stockade_connections_limited_total{how="closed"}';
        const open = (host: string) => RawConnection.open(`http://${host}:${port}`);
        // Workers that meet a new address at the same moment may each begin to count it.
        const first = await open(own!);
        await first.send(rawRequest('GET', '/v1/sales/none'));
        expect((await first.answer())?.status).toBe(404);
        // Up to the limit, one more that is answered, and one too many.
        const theirs = [first, ...(await Promise.all(Array.from({ length: 5 }, () => open(own!))))];
        await Promise.race(theirs.map(({ closed }) => closed));
        const fromHere = await Promise.all(Array.from({ length: 8 }, () => open('127.0.0.1')));
        for (const connection of fromHere) {
          await connection.send(rawRequest('GET', '/v1/sales/none'));
          expect((await connection.answer())?.status).toBe(404);
        }
        expect(await metric(node, refused)).toBe(1);
        for (const connection of [...theirs, ...fromHere]) connection.close();
      },
    );
  }
});

describe('a challenge', () => {
  const solved = (problem: unknown): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const child = execFile(process.execPath, [SOLVER], (error, stdout) =>
        error ? reject(error) : resolve(JSON.parse(stdout)),
      );
      child.stdin!.end(JSON.stringify(problem));
    });

  test('of proof of work is solved by the example, and yields a token', async () => {
    await using node = await startTestNode({
      ...(await redisAndPostgres()),
      env: { CHALLENGE: 'pow', CHALLENGE_BITS: '10' },
    });
    await node.ops.create({ id: 'tickets', stock: 10, segments: 2, requireToken: true }, BY.actor);
    const asked = await askToken(node, 'tickets', 'ann');
    expect(asked).toMatchObject({
      status: 403,
      code: 'challenge_required',
      body: { challenge: { type: 'proof-of-work', bits: 10 } },
    });
    const solution = await solved(asked.body);
    expect(await askToken(node, 'tickets', 'bob', solution)).toMatchObject({
      status: 403,
      code: 'challenge_failed',
    });
    const given = await askToken(node, 'tickets', 'ann', solution);
    expect(given).toMatchObject({ status: 201 });
    expect(await node.buy('tickets', 'ann', withToken(given.body.token))).toMatchObject({ status: 201 });
    expect(await metric(node, 'stockade_purchase_tokens_total{outcome="challenge_failed"}')).toBe(1);
  });

  test('of the shop is issued and checked; if it hangs or throws, buyers are answered in time', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'stockade-challenge-'));
    try {
      const CHALLENGE = join(folder, 'captcha.mjs');
      await writeFile(
        CHALLENGE,
        `export const issue = ({ saleId, buyerId }) => ({ siteKey: 'k', saleId, buyerId });
         export async function verify(answer) {
           if (answer === 'hang') await new Promise(() => {});
           if (answer === 'throw') throw new Error('the provider is away');
           return answer === 'human';
         }`,
      );
      await using node = await startTestNode({
        ...(await redisAndPostgres()),
        env: { CHALLENGE, REQUEST_DEADLINE_MS: '3000', TAKE_TIMEOUT_MS: '2500' },
      });
      await node.ops.create({ id: 'tickets', stock: 10, segments: 2, requireToken: true }, BY.actor);
      expect((await askToken(node, 'tickets', 'ann')).body).toMatchObject({
        code: 'challenge_required',
        challenge: { siteKey: 'k', saleId: 'tickets', buyerId: 'ann' },
      });
      const answered = async (answer: unknown) => (await askToken(node, 'tickets', 'ann', { answer })).code;
      expect(await answered('robot')).toBe('challenge_failed');
      expect(await answered('throw')).toBe('unavailable');
      expect(await answered('hang')).toBe('unavailable');
      expect((await askToken(node, 'tickets', 'ann', { answer: 'human' })).status).toBe(201);
      await until(async () => (await node.log()).includes('the provider is away'), {
        what: 'the log says why',
      });
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test.each([
    [
      'is not there',
      undefined,
      /CHALLENGE is .*captcha\.mjs", but must be pow, or the path of a JavaScript module, and/,
    ],
    ['has no such exports', 'export const issue = () => 1', /must export functions `issue` and `verify`; it/],
  ])('a node does not start with a module that %s', async (_, source, message) => {
    const folder = await mkdtemp(join(tmpdir(), 'stockade-challenge-'));
    try {
      const CHALLENGE = join(folder, 'captcha.mjs');
      if (source !== undefined) await writeFile(CHALLENGE, source);
      await expect(startTestNode({ ...(await redisAndPostgres()), env: { CHALLENGE } })).rejects.toThrow(
        message,
      );
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
