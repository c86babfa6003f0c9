/**
 * The operators' work on dead letters: order events that the webhook did not accept. EventService does it on the stores,
 * OpsClient through a node's ops port.
 */
import { StockadeError } from '../engine/errors.ts';
import type { PageQuery } from './checked-input.ts';

export interface DeadLetter {
  readonly id: string;
  readonly kind: string;
  /** When its events happened: ISO 8601 in UTC. */
  readonly at: string;
  /** When it became a dead letter: ISO 8601 in UTC. */
  readonly deadAt: string;
  readonly attempts: number;
  readonly failedWith: string;
  readonly orderIds: readonly string[];
}

export interface DeadLetters {
  /** Number of all dead letters; `listed` has a page of them, the oldest first. */
  readonly total: number;
  readonly listed: readonly DeadLetter[];
  /** The next page is after this id. Missing: there is none. */
  readonly next?: string | undefined;
}

export interface EventOperations {
  /** @param query by default the 100 oldest */
  deadLetters(query?: PageQuery): Promise<DeadLetters>;
  /**
   * Queues it to be delivered next, before all younger pages. @throws UnknownDeadLetter, or an error with its code
   */
  resendDeadLetter(id: string): Promise<void>;
  /** Queues all dead letters. @returns how many */
  resendAllDeadLetters(): Promise<number>;
}

export class UnknownDeadLetter extends StockadeError {
  constructor(id: string) {
    super('unknown_dead_letter', `there is no dead letter ${id}; it may have been re-sent already`);
  }
}
