/** Both ends of the link by which a worker thread uses the directory of the main thread. */
import type { Directory, SaleListener, SaleView } from '../../engine/board/directory.ts';
import type { PortCalls } from '../../lib/port-calls.ts';

/** The worker's end. */
export class DirectoryLink implements Directory {
  readonly #calls: Pick<PortCalls, 'call'>;
  #listener: SaleListener | undefined;

  constructor(calls: Pick<PortCalls, 'call'>) {
    this.#calls = calls;
  }

  lookup(saleId: string): Promise<unknown> {
    return this.#calls.call('lookup', saleId);
  }

  refresh(saleId: string, generation: number): Promise<unknown> {
    return this.#calls.call('refresh', { saleId, generation });
  }

  /** The main thread tells of the known sales before it answers any later call. */
  listen(listener: SaleListener): void {
    this.#listener = listener;
    void this.#calls.call('listen').catch(() => {});
  }

  /** The calls of the main thread. Their answers tell it that this thread does not use older slots of the sale any more. */
  readonly handlers = {
    changed: (view: SaleView) => this.#listener?.changed(view),
    gone: (saleId: string) => this.#listener?.gone(saleId),
  };
}

/**
 * What the main thread answers to a worker.
 * @param tell calls the worker; resolves when the worker has answered, or its thread has exited
 */
export function directoryHandlers(
  directory: Directory,
  tell: (name: 'changed' | 'gone', argument: SaleView | string) => Promise<void>,
) {
  return {
    // The answers are empty: the worker learns of sales as a listener, in the order in which things happen.
    lookup: async (saleId: string) => void (await directory.lookup(saleId)),
    refresh: async ({ saleId, generation }: { saleId: string; generation: number }) =>
      void (await directory.refresh(saleId, generation)),
    listen: () =>
      directory.listen({
        changed: (view) => tell('changed', view),
        gone: (saleId) => tell('gone', saleId),
      }),
  };
}
