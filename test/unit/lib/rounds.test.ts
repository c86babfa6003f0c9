import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Rounds, type RoundsOptions } from '../../../src/lib/rounds.ts';
import { settledTurns } from '../../support/engine/frozen-time.ts';

/** A pause that does not end while a test runs, and one that ends at once. */
const LONG_MS = 1_000_000;
const SHORT_MS = 1;

let failures: unknown[];
let signals: AbortSignal[];
let running: Rounds;

beforeEach(() => {
  failures = [];
  signals = [];
});

afterEach(() => running.stop());

/** @param round what a round does, by its number from 1 on */
function start(
  everyMs: number,
  round: (number: number) => Promise<boolean>,
  options: Pick<RoundsOptions, 'beginsWithPause' | 'isSteady'> = {},
) {
  running = new Rounds({
    ...{ everyMs, ...options },
    round: (signal) => round(signals.push(signal)),
    failed: (error) => failures.push(error),
  });
  running.start();
}

/** The rounds that have begun when everything has happened that needs no time. */
async function begun(): Promise<number> {
  await settledTurns();
  return signals.length;
}

describe('rounds', () => {
  it('begin at once, and have a pause after each', async () => {
    start(LONG_MS, async () => false);
    expect(await begun()).toBe(1);
  });

  it('follow one another after each pause', async () => {
    start(SHORT_MS, async () => false);
    await vi.waitFor(() => expect(signals.length).toBeGreaterThan(2));
  });

  it('begin with a pause, if that is wanted', async () => {
    start(LONG_MS, async () => false, { beginsWithPause: true });
    expect(await begun()).toBe(0);
    await running.stop();
    start(SHORT_MS, async () => false, { beginsWithPause: true });
    await vi.waitFor(() => expect(signals.length).toBeGreaterThan(0));
  });

  it('have no pause after a round that takes longer than its time, if they are steady', async () => {
    let end = () => {};
    const untilEnd = (number: number) =>
      new Promise<boolean>((resolve) => {
        end = () => resolve(false);
        signals[number - 1]!.onabort = end;
      });
    start(SHORT_MS, untilEnd, { isSteady: true });
    await vi.waitFor(() => expect(signals).toHaveLength(1));
    const beganAt = performance.now();
    await vi.waitFor(() => expect(performance.now() - beganAt).toBeGreaterThan(SHORT_MS));
    end();
    expect(await begun()).toBe(2);
  });

  it('have the rest of their time as a pause, if they are steady', async () => {
    start(LONG_MS, async () => false, { isSteady: true });
    expect(await begun()).toBe(1);
  });

  it('have no pause while there is more to do', async () => {
    start(LONG_MS, async (number) => number < 4);
    expect(await begun()).toBe(4);
  });

  it('have a pause after one that fails, which is reported', async () => {
    start(LONG_MS, () => Promise.reject('no'));
    expect([await begun(), failures]).toEqual([1, ['no']]);
  });

  it('go on when one has failed', async () => {
    start(SHORT_MS, () => Promise.reject('no'));
    await vi.waitFor(() => expect(failures.length).toBeGreaterThan(1));
  });

  it('end early when they are stopped: the round under way is told, and no other begins', async () => {
    let end = () => {};
    start(LONG_MS, () => new Promise((resolve) => (end = () => resolve(true))));
    let isStopped = false;
    const stopped = running.stop().then(() => (isStopped = true));
    expect([await begun(), signals[0]!.aborted, isStopped]).toEqual([1, true, false]);
    end();
    await stopped;
    expect(await begun()).toBe(1);
  });

  it('end at once when they are stopped in a pause', async () => {
    start(LONG_MS, async () => false);
    expect(await begun()).toBe(1);
    await running.stop();
    expect(signals).toHaveLength(1);
  });
});
