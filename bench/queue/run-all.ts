import { note } from '../../src/cli/terminal/output.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { type Giving, measureGiving } from './giving.ts';
import { type ManyQueues, measureManyQueues } from './many-queues.ts';
import type { QueueParameters } from './options.ts';
import { measureReturns, type Returns } from './returns.ts';
import { measureRush, type Rush } from './rush.ts';
import { Stage } from './stage.ts';
import { measureStreams, type Streams } from './streams.ts';
import { measureWaiting, type Waiting } from './waiting.ts';

export interface Measured {
  readonly giving: Giving;
  readonly returns: Returns;
  readonly streams: Streams;
  readonly rush: readonly Rush[];
  readonly many: ManyQueues;
  readonly waiting: Waiting;
}

/** @throws BenchFailure if answers were wrong, or if a sale does not add up */
export async function runAll(parameters: QueueParameters): Promise<Measured> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    const stage = await Stage.start(parameters, teardown);
    try {
      const giving = await measureGiving(stage);
      const returns = await measureReturns(stage);
      const streams = await measureStreams(stage);
      const rush = await measureRush(stage);
      for (const { hasQueue, giveUp } of rush)
        await stage.node.assertVerified(
          `rush-${hasQueue ? 'queue' : 'none'}-${giveUp ? 'impatient' : 'patient'}`,
        );
      await stage.node.assertVerified('returns');
      const many = await measureManyQueues(stage);
      return { giving, returns, streams, rush, many, waiting: await measureWaiting(stage) };
    } catch (error) {
      note(`The node: ${await stage.node.lastWords()}`);
      throw error;
    }
  } finally {
    await teardown.release();
  }
}
