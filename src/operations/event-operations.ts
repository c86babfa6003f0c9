/** What operators do with order events that the webhook did not take. Done in place, or through a node's ops port. */
import { StockadeError } from '../engine/errors.ts';

export interface DeadLetter {
  readonly id: string;
  readonly kind: string;
  /** When its events happened, and when it was given up: ISO 8601 in UTC. */
  readonly at: string;
  readonly deadAt: string;
  readonly attempts: number;
  readonly failedWith: string;
  readonly orderIds: readonly string[];
}

export interface DeadLetters {
  /** All that there are; those that are listed are the oldest. */
  readonly total: number;
  readonly listed: readonly DeadLetter[];
}

export interface EventOperations {
  deadLetters(): Promise<DeadLetters>;
  /** It is delivered next, before anything younger. @throws UnknownDeadLetter, or an error of its code */
  resendDeadLetter(id: string): Promise<void>;
  /** The same with all of them. @returns how many */
  resendAllDeadLetters(): Promise<number>;
}

export class UnknownDeadLetter extends StockadeError {
  constructor(id: string) {
    super('unknown_dead_letter', `there is no dead letter ${id}; it may have been re-sent already`);
  }
}
