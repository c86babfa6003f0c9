import { note } from '../../../src/cli/terminal/output.ts';
import { PostgresServer } from '../../support/servers/postgres-server.ts';
import { type QueueRow, queueProgressText } from './report.ts';
import { brokenInQueue, type QueueRoundOptions, runQueueRound } from './round.ts';
import type { QueueSchedule } from './schedules.ts';

export interface QueueRunOptions {
  readonly schedules: readonly QueueSchedule[];
  readonly rounds: number;
  readonly round: QueueRoundOptions;
}

/** Runs every fault on sales with a queue and returns a row for each. Progress goes to stderr. */
export async function runAllQueues({ schedules, rounds, round }: QueueRunOptions): Promise<QueueRow[]> {
  await using postgres = await PostgresServer.start();
  const rows: QueueRow[] = [];
  for (const [i, schedule] of schedules.entries()) {
    note(`${i + 1}/${schedules.length} ${schedule.name}: ${schedule.what} …`);
    const row: QueueRow = { schedule, rounds: [], broken: [] };
    for (let n = 0; n < rounds; n++) {
      try {
        const result = await runQueueRound([schedule], postgres, { ...round, seed: round.seed + n });
        row.rounds.push(result);
        row.broken.push(...brokenInQueue(result));
      } catch (error) {
        // A round that does not end proves nothing: it counts as broken, and the other faults are still tried.
        row.broken.push(`a round did not end: ${String(error)}`);
        if (error instanceof Error && error.stack) note(error.stack);
        await postgres.restart();
      }
    }
    note(`  ${queueProgressText(row)}`);
    for (const line of row.broken) note(`  BROKEN ${line}`);
    rows.push(row);
  }
  return rows;
}
