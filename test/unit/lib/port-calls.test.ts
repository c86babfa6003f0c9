import { MessageChannel, Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Busy, isBusy, StockadeError } from '../../../src/engine/errors.ts';
import { PortCalls, ThreadEnd } from '../../../src/lib/port-calls.ts';

describe('calls over a port', () => {
  let channel: MessageChannel;
  let here: PortCalls;

  beforeEach(() => {
    channel = new MessageChannel();
    here = new PortCalls(channel.port1, {});
    new PortCalls(channel.port2, {
      double: (n: number) => n * 2,
      refuse: () => {
        throw new StockadeError('port_in_use', 'somebody listens there');
      },
      crowd: () => {
        throw new Busy('too many wait');
      },
      fail: async () => {
        throw new RangeError('out of range');
      },
      never: () => new Promise(() => {}),
    });
  });

  afterEach(() => channel.port1.close());

  test('return what the other end returns', async () => {
    expect(await Promise.all([here.call('double', 2), here.call('double', 3)])).toEqual([4, 6]);
  });

  test('throw what the other end throws, with its code', async () => {
    const refused = here.call('refuse');
    await expect(refused).rejects.toBeInstanceOf(StockadeError);
    await expect(refused).rejects.toMatchObject({ code: 'port_in_use', message: 'somebody listens there' });
    await expect(here.call('fail')).rejects.toThrow('out of range');
    await expect(here.call('unheard-of')).rejects.toThrow();
  });

  test('throw Busy in a form that `isBusy` recognises', async () => {
    const error = await here.call('crowd').catch((thrown: unknown) => thrown);
    expect(isBusy(error)).toBe(true);
    expect(isBusy(new Busy('too many wait'))).toBe(true);
    expect(isBusy(await here.call('refuse').catch((thrown: unknown) => thrown))).toBe(false);
  });

  test('ignore an answer that comes after they were given up', async () => {
    const late = [here.call('double', 2), here.call('refuse')];
    here.abandon();
    for (const each of late) await expect(each).rejects.toThrow('the other thread has ended');
    // The answers come in this order, so those two have come. An error in them would fail the run.
    const other = new Promise((resolve) => channel.port1.once('message', resolve));
    channel.port2.postMessage({ kind: 'result', id: 99, value: 0 });
    await other;
  });

  test('fail when the other end has ended, also calls under way', async () => {
    const underWay = here.call('never');
    here.abandon();
    await expect(underWay).rejects.toThrow('the other thread has ended');
    await expect(here.call('double', 2)).rejects.toThrow('the other thread has ended');
  });
});

describe('the end of a thread', () => {
  const started = (code: string) => {
    const thread = new Worker(code, { eval: true });
    const calls: PortCalls = new PortCalls(thread, {
      threw: (message: string) => end.fail(new Error(message)),
    });
    const end = new ThreadEnd(thread, 'worker 7', calls);
    return { thread, calls, end };
  };
  const TELLS =
    "require('node:worker_threads').parentPort.postMessage({ kind: 'call', id: 1, name: 'threw', argument: 'no' })";

  test.each([
    ['which exits', 'process.exit(3)', 'worker 7 ended with code 3'],
    ['which throws', "throw new Error('no memory')", 'no memory'],
    ['which tells what it threw, and exits', `${TELLS}; process.exit(3)`, 'no'],
  ])('%s is the reason of calls under way, and of later ones', async (_, code, why) => {
    const { calls, end } = started(code);
    const start = calls.call('start');
    await expect(start).rejects.toThrow(why);
    expect((await end.failed).message).toBe(why);
    await expect(calls.call('metrics')).rejects.toThrow(why);
  });

  test('is no failure once it is expected', async () => {
    const { thread, calls, end } = started('setInterval(() => {}, 1_000)');
    const stop = calls.call('stop');
    stop.catch(() => {});
    end.expect();
    await thread.terminate();
    await expect(stop).rejects.toThrow('the other thread has ended');
    expect(await Promise.race([end.failed, 'none'])).toBe('none');
  });
});
