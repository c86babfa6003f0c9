/** Restarts of Postgres. */
import type { Schedule } from '../schedule.ts';

export const POSTGRES: readonly Schedule[] = [
  {
    name: 'restart-postgres',
    what: 'Postgres restarted, in good order',
    times: 2,
    async strike({ world, hold }) {
      await world.postgres.stop('fast');
      await hold();
      await world.postgres.restart();
    },
  },
  {
    name: 'crash-postgres',
    what: 'Postgres stopped without a checkpoint',
    times: 1,
    async strike({ world, hold }) {
      await world.postgres.stop('immediate');
      await hold();
      await world.postgres.restart();
    },
  },
];
