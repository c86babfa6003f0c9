import type { Directory, SaleView } from '../../engine/board/directory.ts';
import type { PortCalls } from '../../lib/port-calls.ts';

/** The main thread's directory as a worker thread uses it, through messages. */
export class DirectoryLink implements Directory {
  readonly #calls: PortCalls;
  readonly #listeners: ((view: SaleView) => void)[] = [];

  constructor(calls: PortCalls) {
    this.#calls = calls;
  }

  lookup(saleId: string): Promise<SaleView | undefined> {
    return this.#calls.call('lookup', saleId);
  }

  refresh(saleId: string, generation: number): Promise<SaleView | undefined> {
    return this.#calls.call('refresh', { saleId, generation });
  }

  onChange(listener: (view: SaleView) => void): void {
    this.#listeners.push(listener);
  }

  changed(view: SaleView): void {
    for (const listener of this.#listeners) listener(view);
  }
}
