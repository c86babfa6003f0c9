import type { Backend, RefillReply, TakeBatch, TakeReply, TakeStore } from '../../src/engine/contract.ts';
import { NotExecuted, OutcomeUnknown } from '../../src/engine/errors.ts';

/**
 * What happens to a take on its way. late, very late: the caller gives it up, and it arrives when another one has been
 * answered, or when the test says so.
 */
export type Fate = 'well' | 'refused' | 'request lost' | 'reply lost' | 'late' | 'very late';

export interface LossyBackend extends Backend {
  /** Lets arrive what is still on its way. */
  deliver(): Promise<void>;
}

/** A backend whose takes meet these fates, one after the other; those behind the last one are well. */
export function lossy(backend: Backend, fates: readonly Fate[]): LossyBackend {
  const { takes } = backend;
  const late: (() => Promise<unknown>)[] = [];
  const veryLate: (() => Promise<unknown>)[] = [];
  let next = 0;

  async function meet<T>({ sending }: TakeBatch, send: () => Promise<T>): Promise<T> {
    const fate = fates[next++] ?? 'well';
    if (fate === 'refused') throw new NotExecuted('refused, as the test wants it');
    sending?.();
    if (fate === 'late') late.push(send);
    if (fate === 'very late') veryLate.push(send);
    if (fate !== 'well' && fate !== 'reply lost') throw new OutcomeUnknown('given up, as the test wants it');
    const reply = await send();
    if (fate === 'reply lost') throw new OutcomeUnknown('no reply, as the test wants it');
    await late.shift()?.();
    return reply;
  }

  const store: TakeStore = {
    get ready() {
      return takes.ready;
    },
    whenReady: (timeoutMs) => takes.whenReady(timeoutMs),
    take: (batch) =>
      meet<TakeReply>(
        batch,
        bind(batch, (sent) => takes.take(sent)),
      ),
    refillAndTake: (batch, segments) =>
      meet<RefillReply>(
        batch,
        bind(batch, (sent) => takes.refillAndTake(sent, segments)),
      ),
    hint: (hint) => takes.hint(hint),
  };
  return {
    durable: backend.durable,
    takes: store,
    sales: backend.sales,
    log: backend.log,
    transfers: backend.transfers,
    audits: backend.audits,
    subscribe: (events) => backend.subscribe(events),
    close: () => backend.close(),
    async deliver() {
      for (const send of [...late.splice(0), ...veryLate.splice(0)]) await send();
    },
  };
}

/** The batch as it is now: what is under way does not change with the caller's orders. */
function bind<T>(
  { sending: _, ...batch }: TakeBatch,
  send: (batch: TakeBatch) => Promise<T>,
): () => Promise<T> {
  const orders = batch.orders.map(({ orderId, buyerId, quantity, key }) => ({
    orderId,
    buyerId,
    quantity,
    key,
  }));
  return () => send({ ...batch, orders });
}
