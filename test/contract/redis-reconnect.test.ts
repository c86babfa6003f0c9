/** What a subscriber of a Redis hears when connections are cut. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { RedisBackend } from '../../src/engine/redis/redis-backend.ts';
import { freshPrefix, redisUrl, until } from '../support/fixtures.ts';
import { LONG_TIMEOUTS } from '../support/long-timeouts.ts';
import { TcpProxy } from '../support/servers/network/tcp-proxy.ts';

let proxy: TcpProxy;
let backend: RedisBackend;

beforeEach(async () => {
  proxy = await TcpProxy.start(Number(new URL(redisUrl()).port));
  const { takeTimeoutMs } = LONG_TIMEOUTS;
  const url = proxy.through(redisUrl());
  backend = await RedisBackend.open({ url, keyPrefix: freshPrefix(), takeTimeoutMs, maxLogOrders: 1_000 });
});

afterEach(async () => {
  await backend.close();
  await proxy.stop();
});

it('a subscriber hears when its connection and that of the takes are back, until its subscription ends', async () => {
  const heard: string[] = [];
  const hears = (who: string) => ({
    hint: () => {},
    reconnected: () => heard.push(`${who}: takes`),
    resubscribed: () => heard.push(`${who}: messages`),
  });
  const end = await backend.subscribe(hears('gone'));
  await backend.subscribe(hears('here'));
  // Those that handle neither hear the messages of the next step as before.
  const hints: string[] = [];
  await backend.subscribe({ hint: ({ saleId }) => hints.push(saleId) });
  expect(heard).toEqual([]);
  proxy.cutAll();
  await until(() => heard.length >= 4, { what: 'all connections are back' });
  expect(new Set(heard)).toEqual(new Set(['gone: takes', 'gone: messages', 'here: takes', 'here: messages']));
  await until(
    () => {
      if (backend.takes.ready) backend.takes.hint({ saleId: 'told', segments: [0], awaited: true });
      return hints.includes('told');
    },
    { what: 'a hint is heard again' },
  );

  await end();
  heard.length = 0;
  proxy.cutAll();
  await until(() => heard.length >= 2, { what: 'the connections are back once more' });
  expect(new Set(heard)).toEqual(new Set(['here: takes', 'here: messages']));
});
