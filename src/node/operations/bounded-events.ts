import type { PageQuery } from '../../operations/checked-input.ts';
import type { DeadLetters, EventOperations } from '../../operations/event-operations.ts';
import type { BoundedWork } from './bounded-work.ts';

/** EventOperations with the bounds of BoundedWork. Each also throws StoresAway and OperationTimedOut. */
export class BoundedEvents implements EventOperations {
  readonly #work: EventOperations;
  readonly #bounded: BoundedWork;

  constructor(work: EventOperations, bounded: BoundedWork) {
    this.#work = work;
    this.#bounded = bounded;
  }

  deadLetters(query?: PageQuery): Promise<DeadLetters> {
    return this.#bounded.run('dead letters', () => this.#work.deadLetters(query));
  }

  resendDeadLetter(id: string): Promise<void> {
    return this.#bounded.run('resend', () => this.#work.resendDeadLetter(id), { changes: true });
  }

  resendAllDeadLetters(): Promise<number> {
    return this.#bounded.run('resend', () => this.#work.resendAllDeadLetters(), { changes: true });
  }
}
