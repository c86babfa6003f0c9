/** Waits for a condition, never for time. */
import { inspect } from 'node:util';

const MIN_PAUSE_MS = 5;
const MAX_PAUSE_MS = 250;

export interface UntilOptions {
  timeoutMs?: number;
  /** What is awaited, for the error message. */
  what: string;
}

/**
 * Calls the condition until its result is truthy, and returns that. An error counts as "not yet", so that a server that is
 * starting or stopping can be asked; the last error is the cause if the time is over. The pause between two calls is twice as
 * long as a call takes: a wait must not keep a core busy that others need.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  { timeoutMs = 30_000, what }: UntilOptions,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  let last: Answer<T> = {};
  do {
    const began = performance.now();
    const answer = await answerWithin(condition, deadline - Date.now());
    if (answer.value) return answer.value;
    // A missing answer says less than the answer before it, which is kept.
    if ('value' in answer || 'error' in answer) last = answer;
    const pauseMs = Math.max(MIN_PAUSE_MS, Math.min(2 * (performance.now() - began), MAX_PAUSE_MS));
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
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
