/** Waiting for a condition, never for time. */
import { inspect } from 'node:util';

const pollMs = 5;

export interface UntilOptions {
  timeoutMs?: number;
  /** What is awaited, for the message of the error. */
  what: string;
}

/**
 * Asks until the answer is truthy, and gives it back. An error counts as "not yet", so that a server on its
 * way up or down can be asked; the last one is the cause when time is up.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  { timeoutMs = 30_000, what }: UntilOptions,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  let last: Answer<T> = {};
  do {
    const answer = await answerWithin(condition, deadline - Date.now());
    if (answer.value) return answer.value;
    // No answer in time says less than the one before it.
    if ('value' in answer || 'error' in answer) last = answer;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  } while (Date.now() < deadline);
  const outcome = 'error' in last ? 'an error' : 'value' in last ? inspect(last.value) : 'no answer at all';
  throw new Error(`not within ${timeoutMs} ms: ${what}; last came ${outcome}`, { cause: last.error });
}

interface Answer<T> {
  value?: T;
  error?: unknown;
}

async function answerWithin<T>(condition: () => T | Promise<T>, limitMs: number): Promise<Answer<T>> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<Answer<T>>((resolve) => {
    timer = setTimeout(() => resolve({}), limitMs);
  });
  const answer = async (): Promise<Answer<T>> => {
    try {
      return { value: await condition() };
    } catch (error) {
      return { error };
    }
  };
  try {
    return await Promise.race([answer(), timeout]);
  } finally {
    clearTimeout(timer);
  }
}
