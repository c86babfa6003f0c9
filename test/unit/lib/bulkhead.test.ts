import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Bulkhead } from '../../../src/lib/bulkhead.ts';
import { elapse, freezeTime, settledTurns } from '../../support/engine/frozen-time.ts';
import { gate } from '../../support/gate.ts';

const MAX_WAIT_MS = 100;

let bulkhead: Bulkhead;
let begun: string[];
let ends: Map<string, (error?: Error) => void>;
let outcomes: Record<string, string>;

beforeEach(() => {
  freezeTime();
  bulkhead = new Bulkhead({ parallel: 2, maxWaiting: 3, maxWaitMs: MAX_WAIT_MS });
  begun = [];
  ends = new Map();
  outcomes = {};
});

afterEach(() => vi.useRealTimers());

/** Work that ends when the test ends it. */
function ask(name: string): void {
  const work = () => {
    begun.push(name);
    return new Promise<void>((resolve, reject) => {
      ends.set(name, (error) => (error ? reject(error) : resolve()));
    });
  };
  bulkhead.run(work).then(
    () => (outcomes[name] = 'done'),
    (error) => (outcomes[name] = error.code ?? error.message),
  );
}

async function end(name: string, error?: Error): Promise<void> {
  ends.get(name)!(error);
  await settledTurns();
}

describe('a bulkhead', () => {
  it('runs the allowed number, and starts the next in order when one ends', async () => {
    for (const name of ['a', 'b', 'c', 'd']) ask(name);
    expect(begun).toEqual(['a', 'b']);
    await end('b');
    expect(begun).toEqual(['a', 'b', 'c']);
    await end('a', new Error('failed'));
    expect(begun).toEqual(['a', 'b', 'c', 'd']);
    expect(outcomes).toEqual({ a: 'failed', b: 'done' });
    await end('c');
    await end('d');
    for (const name of ['e', 'f', 'g']) ask(name);
    expect(begun.slice(4)).toEqual(['e', 'f']);
  });

  it('starts others while one waits aside, and returns to the allowed number', async () => {
    const { open: comeBack, opened: away } = gate();
    void bulkhead.run(() =>
      bulkhead
        .aside(() => away)
        .then(() => new Promise<void>((resolve) => ends.set('aside', () => resolve()))),
    );
    for (const name of ['a', 'b', 'c', 'd']) ask(name);
    expect(begun).toEqual(['a', 'b']);
    comeBack();
    await settledTurns();
    // Three are running now: the first that ends starts no other.
    await end('a');
    expect(begun).toEqual(['a', 'b']);
    await end('aside');
    expect(begun).toEqual(['a', 'b', 'c']);
    await end('b');
    await end('c');
    expect(begun).toEqual(['a', 'b', 'c', 'd']);
    expect(outcomes).toEqual({ a: 'done', b: 'done', c: 'done' });
  });

  it('rejects one too many at once', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) ask(name);
    await settledTurns();
    expect(outcomes).toEqual({ f: 'busy' });
    await end('a');
    ask('g');
    expect(outcomes).toEqual({ a: 'done', f: 'busy' });
  });

  it('rejects new work while the head has waited too long, and never starts work that has', async () => {
    for (const name of ['a', 'b', 'c']) ask(name);
    await elapse(MAX_WAIT_MS / 2);
    ask('d');
    await elapse(MAX_WAIT_MS / 2 + 1);
    ask('e');
    await settledTurns();
    expect(outcomes).toEqual({ e: 'busy' });
    await end('a');
    expect(outcomes).toEqual({ a: 'done', c: 'busy', e: 'busy' });
    expect(begun).toEqual(['a', 'b', 'd']);
  });

  it('has all slots free after all waiting work was rejected', async () => {
    for (const name of ['a', 'b', 'c']) ask(name);
    await elapse(MAX_WAIT_MS + 1);
    await end('a');
    await end('b');
    for (const name of ['d', 'e', 'f']) ask(name);
    await settledTurns();
    expect(begun).toEqual(['a', 'b', 'd', 'e']);
  });
});
