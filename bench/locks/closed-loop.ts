/** Clients that each repeat a call as soon as it ends, measured by tinybench. */
import { Bench } from 'tinybench';
import { monotonicMs } from '../../src/lib/monotonic.ts';

export interface Load {
  readonly clients: number;
  readonly warmUpMs: number;
  readonly ms: number;
}

export interface LoopResult {
  /** The measured time, by the clock of `monotonicMs`, which all processes of a machine share. */
  readonly began: number;
  readonly ended: number;
  /** Milliseconds from the begin of a call to its end, sorted. */
  readonly latencies: readonly number[];
  /** Relative margin of error of the mean latency, in percent (95 %). */
  readonly rme: number;
  /** All calls, including the warm-up. */
  readonly done: number;
}

/** @param act one call of a client; clients count from 0. @throws what `act` throws */
export async function closedLoop(
  { clients, warmUpMs, ms }: Load,
  act: (client: number) => Promise<unknown>,
): Promise<LoopResult> {
  const idle = Array.from({ length: clients }, (_, client) => client);
  let [done, began, ended] = [0, 0, 0];
  const bench = new Bench({
    concurrency: 'task',
    threshold: clients,
    iterations: 0,
    time: ms,
    warmupIterations: 0,
    warmupTime: warmUpMs,
    retainSamples: true,
    throws: true,
    setup: () => {
      began = monotonicMs();
    },
    teardown: () => {
      ended = monotonicMs();
    },
  });
  bench.add('act', async () => {
    const client = idle.pop()!;
    await act(client);
    idle.push(client);
    done++;
  });
  const [task] = await bench.run();
  const { result } = task!;
  if (!('latency' in result)) throw new Error(`tinybench ended in state ${result.state}`);
  const latencies = [...(result.latency.samples ?? [])];
  return { began, ended, latencies, rme: result.latency.rme, done };
}
