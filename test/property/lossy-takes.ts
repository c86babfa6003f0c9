import type {
  Backend,
  RefillReply,
  TakeBatch,
  TakeReply,
  TakeServer,
  TakeStore,
} from '../../src/engine/contract.ts';
import { NotExecuted, OutcomeUnknown } from '../../src/engine/errors.ts';

/**
 * What happens to a take on its way. `late`, `very late`: the caller times out, and the take arrives after another one was
 * answered, or when the test says so.
 */
export type Fate = 'well' | 'refused' | 'request lost' | 'reply lost' | 'late' | 'very late';

const ONE_SERVER: TakeServer = { isSame: () => true };

export interface LossyBackend extends Backend {
  /** Delivers what is still on its way. */
  deliver(): Promise<void>;
}

/** A backend whose takes have these fates, one after the other. Takes after the last fate arrive normally. */
export function lossy(backend: Backend, fates: readonly Fate[]): LossyBackend {
  const { takes } = backend;
  const late: (() => Promise<unknown>)[] = [];
  const veryLate: (() => Promise<unknown>)[] = [];
  let next = 0;

  async function meet<T>({ sending, orders }: TakeBatch, send: () => Promise<T>): Promise<T> {
    const fate = fates[next++] ?? 'well';
    if (fate === 'refused') throw new NotExecuted('refused by the test');
    sending?.(orders, ONE_SERVER);
    if (fate === 'late') late.push(send);
    if (fate === 'very late') veryLate.push(send);
    if (fate !== 'well' && fate !== 'reply lost') throw new OutcomeUnknown('timed out by the test');
    const reply = await send();
    if (fate === 'reply lost') throw new OutcomeUnknown('reply dropped by the test');
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

/** A copy of the batch: a take on its way does not change when the caller's orders do. */
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
