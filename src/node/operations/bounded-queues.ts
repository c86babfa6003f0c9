import type { Author } from '../../engine/sale/author.ts';
import type {
  PlacePage,
  PlaceQuery,
  QueueChange,
  QueueOperations,
  QueueStatus,
} from '../../operations/queue/queue-operations.ts';
import type { QueueService } from '../../queue/operators/queue-service.ts';
import type { BoundedWork } from './bounded-work.ts';

/** QueueOperations with the bounds of BoundedWork. Each also throws StoresAway and OperationTimedOut. */
export class BoundedQueues implements QueueOperations {
  readonly #work: QueueService;
  readonly #bounded: BoundedWork;

  constructor(work: QueueService, bounded: BoundedWork) {
    this.#work = work;
    this.#bounded = bounded;
  }

  showQueue(saleId: string, options?: { readonly count?: boolean }): Promise<QueueStatus> {
    return this.#bounded.run('queue', () => this.#work.showQueue(saleId, options));
  }

  places(saleId: string, query?: PlaceQuery): Promise<PlacePage> {
    return this.#bounded.run('places', () => this.#work.places(saleId, query));
  }

  changeQueue(saleId: string, change: QueueChange, author: Author): Promise<QueueStatus> {
    const work = (latestMs: number) => this.#work.changeQueue(saleId, change, author, latestMs);
    return this.#bounded.run(`${change.action} of the offers`, work, { changes: true });
  }

  /** The bound is for the beginning. Each statement behind a piece has its own. */
  drawFile(saleId: string): Promise<AsyncIterable<string>> {
    return this.#bounded.run('draw', () => this.#work.drawFile(saleId));
  }
}
