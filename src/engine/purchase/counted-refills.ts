import type { Backend, LogHint, RefillReply, TakeBatch, TakeReply, TakeStore } from '../contract.ts';

/** A take store that counts its refills. Each is a batch that found too few units in its home segment. */
class CountedTakes implements TakeStore {
  refills = 0;
  readonly #takes: TakeStore;

  constructor(takes: TakeStore) {
    this.#takes = takes;
  }

  get ready(): boolean {
    return this.#takes.ready;
  }

  whenReady(timeoutMs: number): Promise<void> {
    return this.#takes.whenReady(timeoutMs);
  }

  take(batch: TakeBatch): Promise<TakeReply> {
    return this.#takes.take(batch);
  }

  refillAndTake(batch: TakeBatch, segments: number): Promise<RefillReply> {
    this.refills++;
    return this.#takes.refillAndTake(batch, segments);
  }

  hint(hint: LogHint): void {
    this.#takes.hint(hint);
  }
}

/** The same backend with a count of the refills so far. */
export function countRefills(backend: Backend): { backend: Backend; refills: () => number } {
  const takes = new CountedTakes(backend.takes);
  const { durable, sales, log, transfers, audits } = backend;
  const counted = {
    durable,
    takes,
    sales,
    log,
    transfers,
    audits,
    subscribe: backend.subscribe.bind(backend),
    close: backend.close.bind(backend),
  };
  return { backend: counted, refills: () => takes.refills };
}
