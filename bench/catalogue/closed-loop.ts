/** Clients that each repeat a call as soon as they have its answer, for a given time. */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';

export interface Load {
  readonly clients: number;
  readonly warmUpMs: number;
  readonly ms: number;
  /** Calls that a client makes before it yields to the event loop. */
  readonly callsPerTurn?: number;
}

export interface LoopResult {
  /** Answers within the measured time, by answer. */
  readonly answers: Readonly<Record<string, number>>;
  /** All answers, including those of the warm-up and after the end of the time. */
  readonly allAnswers: Readonly<Record<string, number>>;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const NS_PER_MS = 1e6;

/**
 * @param act one call of a client; clients count from 0. Returns the answer
 * @returns after the time is over and every client has its answer
 */
export async function closedLoop(
  { clients, warmUpMs, ms, callsPerTurn = 1 }: Load,
  act: (client: number) => Promise<string>,
): Promise<LoopResult> {
  const counts = new Answers();
  const from = performance.now() + warmUpMs;
  const until = from + ms;
  const client = async (number: number) => {
    for (let calls = 1, now = performance.now(); now < until; calls++) {
      const asked = now;
      const answer = await act(number);
      now = performance.now();
      counts.add(answer, now >= from && now < until ? now - asked : undefined);
      // A purchase comes from a socket, with a turn of the event loop. Without turns, answers that need no I/O would
      // follow each other endlessly, and timers and replies of stores would never be handled.
      if (calls % callsPerTurn === 0) {
        await turn();
        now = performance.now();
      }
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, number) => client(number)));
  return counts.result(ms / 1_000);
}

class Answers {
  readonly #timely: Record<string, number> = {};
  readonly #all: Record<string, number> = {};
  readonly #latencies: RecordableHistogram = createHistogram();

  /** @param tookMs `undefined` for an answer outside the measured time */
  add(answer: string, tookMs: number | undefined): void {
    this.#all[answer] = (this.#all[answer] ?? 0) + 1;
    if (tookMs === undefined) return;
    this.#timely[answer] = (this.#timely[answer] ?? 0) + 1;
    this.#latencies.record(Math.max(1, Math.round(tookMs * NS_PER_MS)));
  }

  result(seconds: number): LoopResult {
    const at = (percent: number) =>
      this.#latencies.count === 0 ? 0 : this.#latencies.percentile(percent) / NS_PER_MS;
    return { answers: this.#timely, allAnswers: this.#all, seconds, p50Ms: at(50), p99Ms: at(99) };
  }
}

export function total(answers: Readonly<Record<string, number>>): number {
  return Object.values(answers).reduce((sum, count) => sum + count, 0);
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
