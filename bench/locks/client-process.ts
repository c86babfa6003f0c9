/** A child process of the bench that runs clients on request. It ends with the bench. */
import { Redis } from 'ioredis';
import { note } from '../../src/cli/terminal/output.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { Locks } from '../../src/locks/locks.ts';
import { closedLoop, type Load, type LoopResult } from './closed-loop.ts';
import { ids } from './ids.ts';
import { purchases } from './purchases.ts';
import { sections } from './sections.ts';
import type { Task } from './tasks.ts';

export interface Order {
  readonly task: Task;
  readonly load: Load;
  /** Clients are numbered across all processes. */
  readonly firstClient: number;
  /** Sets the keys of this run in Redis apart. */
  readonly run: string;
}

export type Report = { readonly result: LoopResult } | { readonly failure: string };

const [url] = process.argv.slice(2);
const redis = new Redis(url!);
const locks = await Locks.open({ url: url! });

async function carryOut({ task, load, firstClient, run }: Order): Promise<LoopResult> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    const act = await clientOf(task, run, teardown);
    return await closedLoop(load, (client) => act(firstClient + client));
  } finally {
    await teardown.release();
  }
}

async function clientOf(
  task: Task,
  run: string,
  teardown: Teardown,
): Promise<(client: number) => Promise<unknown>> {
  switch (task.kind) {
    case 'spin':
    case 'wake-up':
      return sections(task, run, redis, locks);
    case 'lane':
    case 'one by one':
      return purchases(task, { url: url!, saleId: run, locks, teardown });
    default: {
      const next = ids(task, redis);
      return async () => next();
    }
  }
}

process.on('message', async (order: Order) => {
  const report = await carryOut(order).then(
    (result): Report => ({ result }),
    (error): Report => ({ failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
  process.send!(report);
});
process.on('disconnect', () => process.exit());
process.send!('ready');
