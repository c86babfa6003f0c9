/** How a worker thread learns of sales, and says that it has let go of a slot: over a real port, in one thread. */
import { MessageChannel } from 'node:worker_threads';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Directory, SaleListener, SaleView } from '../../../src/engine/board/directory.ts';
import { PortCalls } from '../../../src/lib/port-calls.ts';
import { DirectoryLink, directoryHandlers } from '../../../src/node/worker/directory-link.ts';
import { gate } from '../../support/gate.ts';
import { aSale } from '../../support/shop/sales.ts';

const view: SaleView = {
  record: { sale: aSale({ id: 'sale' }), state: 'open', generation: 1, epoch: 1 },
  slot: 3,
};

let channel: MessageChannel;
/** The main thread's directory. */
let listeners: SaleListener[];
let known: SaleView[];
let exit: () => void;
/** The worker's end. */
let link: DirectoryLink;
let told: unknown[];

beforeEach(() => {
  channel = new MessageChannel();
  listeners = [];
  known = [];
  told = [];
  const directory: Directory = {
    lookup: async () => {
      for (const { changed } of listeners) void changed(view);
    },
    refresh: async (saleId, generation) => void told.push(['refresh', saleId, generation]),
    listen: (listener) => {
      listeners.push(listener);
      for (const one of known) void listener.changed(one);
    },
  };
  const exited = new Promise<void>((resolve) => {
    exit = resolve;
  });
  const main: PortCalls = new PortCalls(
    channel.port1,
    directoryHandlers(directory, (name, argument) => main.call<void>(name, argument).catch(() => exited)),
  );
  const worker: PortCalls = new PortCalls(channel.port2, {
    changed: (news: SaleView) => link.handlers.changed(news),
    gone: (saleId: string) => link.handlers.gone(saleId),
  });
  link = new DirectoryLink(worker);
});

afterEach(() => channel.port1.close());

const listener: SaleListener = {
  changed: (news) => void told.push(news),
  gone: (saleId) => void told.push(saleId),
};

test('a worker hears of all known sales before the answer to its first question', async () => {
  known = [view];
  link.listen(listener);
  expect(await link.refresh('sale', 1)).toBeUndefined();
  expect(told).toEqual([['refresh', 'sale', 1], view]);
});

test('a worker hears of the sale that it looks up before the answer, which is empty', async () => {
  link.listen(listener);
  expect(await link.lookup('sale')).toBeUndefined();
  expect(told).toEqual([view]);
});

test('news is answered when the worker has let go', async () => {
  const { open: letGo, opened: held } = gate();
  link.listen({ ...listener, gone: () => held });
  await link.lookup('sale');
  let isAnswered = false;
  const answered = Promise.resolve(listeners[0]!.gone('sale')).then(() => {
    isAnswered = true;
  });
  await link.lookup('sale');
  expect(isAnswered).toBe(false);
  letGo();
  await answered;
});

test('a worker that fails to let go, or is gone, counts as answered only when its thread has exited', async () => {
  link.listen({
    ...listener,
    gone: () => {
      throw new Error('a bug');
    },
  });
  await link.lookup('sale');
  let isAnswered = false;
  const answered = Promise.resolve(listeners[0]!.gone('sale')).then(() => {
    isAnswered = true;
  });
  for (let i = 0; i < 3; i++) await link.lookup('sale');
  expect(isAnswered).toBe(false);
  exit();
  await answered;
});
