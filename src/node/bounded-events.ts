import { type DeadLetters, type EventOperations, EventService } from '../sync/events/event-operations.ts';
import { BoundedWork } from './bounded-work.ts';
import { StoreWatch } from './store-watch.ts';
import type { Stores } from './stores.ts';

/** Each throws StoresAway and OperationTimedOut. What was given up goes on unheard. */
class BoundedEvents implements EventOperations {
  readonly #work: EventOperations;
  readonly #bounded: BoundedWork;

  constructor(work: EventOperations, bounded: BoundedWork) {
    this.#work = work;
    this.#bounded = bounded;
  }

  deadLetters(): Promise<DeadLetters> {
    return this.#bounded.run('dead letters', this.#work.deadLetters());
  }

  resendDeadLetter(id: string): Promise<void> {
    return this.#bounded.run('resend', this.#work.resendDeadLetter(id), { changes: true });
  }

  resendAllDeadLetters(): Promise<number> {
    return this.#bounded.run('resend', this.#work.resendAllDeadLetters(), { changes: true });
  }
}

export function boundedEvents(stores: Stores): EventOperations {
  return new BoundedEvents(new EventService(stores.db), new BoundedWork(new StoreWatch(stores)));
}
