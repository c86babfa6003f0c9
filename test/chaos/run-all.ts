import { note } from '../../src/cli/terminal/output.ts';
import { PostgresServer } from '../support/servers/postgres-server.ts';
import type { ChaosOptions } from './options.ts';
import { progressText, type Row } from './report.ts';
import { brokenIn, runRound } from './round.ts';
import type { Schedule } from './schedule.ts';

/** Runs every fault and returns a row for each. Progress goes to stderr. */
export async function runAll(options: ChaosOptions): Promise<Row[]> {
  await using postgres = await PostgresServer.start();
  const rows: Row[] = [];
  for (const [i, schedule] of options.schedules.entries()) {
    note(`${i + 1}/${options.schedules.length} ${schedule.name}: ${schedule.what} …`);
    const row = await runRounds(schedule, postgres, options);
    note(`  ${progressText(row)}`);
    for (const line of row.broken) note(`  BROKEN ${line}`);
    rows.push(row);
  }
  return rows;
}

async function runRounds(schedule: Schedule, postgres: PostgresServer, options: ChaosOptions): Promise<Row> {
  const missing = await schedule.missing?.();
  const row: Row = { schedule, missing, rounds: [], broken: [] };
  if (missing !== undefined) return row;
  for (let round = 0; round < options.rounds; round++) {
    try {
      const result = await runRound([schedule], postgres, { ...options.round, seed: options.seed + round });
      row.rounds.push(result);
      row.broken.push(...brokenIn([schedule], result));
    } catch (error) {
      // A round that does not end proves nothing: it counts as broken, and the other faults are still tried.
      row.broken.push(`a round did not end: ${String(error)}`);
      if (error instanceof Error && error.stack) note(error.stack);
      await postgres.restart();
    }
  }
  return row;
}
