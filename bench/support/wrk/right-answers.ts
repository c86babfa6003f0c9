/** Whether a crowd got the answers that it should have got. */
import { BenchFailure } from '../failure.ts';
import { answersBetween, type NodeFigures } from '../metrics-text.ts';

/**
 * The share of answers that may differ from the expected: those that wrk cuts off, and those during a stall of the
 * machine.
 */
export const MAX_WRONG_SHARE = 0.001;

/** @returns how many answers had the outcome @throws BenchFailure if there were none, or too many others */
export function rightAnswers(before: NodeFigures, after: NodeFigures, outcome: string): number {
  const answers = answersBetween(before, after);
  const right = answers.get(outcome) ?? 0;
  const total = [...answers.values()].reduce((sum, n) => sum + n, 0);
  const wrong = total - right;
  if (total > 0 && wrong <= total * MAX_WRONG_SHARE) return right;
  const came = [...answers].map(([name, n]) => `${n} ${name}`).join(', ');
  throw new BenchFailure(`of ${total} answers ${wrong} were not ${outcome}; there came ${came}`);
}
