import { isBusy, StockadeError } from '../../engine/errors.ts';
import type { Observer } from './exchange.ts';

/** What is answered when the work for a request has failed. */
interface Failures<A> {
  /** It was not begun: too much is under way. */
  readonly busy: A;
  readonly failed: A;
}

/** The answer to a request whose work has thrown this. An error of an unknown kind is reported. */
export function failure<A>(observer: Observer, error: unknown, { busy, failed }: Failures<A>): A {
  if (!(error instanceof StockadeError)) observer.fault(error);
  return isBusy(error) ? busy : failed;
}
