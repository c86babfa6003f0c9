import type { Config } from '../../config/config.ts';
import { settingsFor } from '../../config/settings.ts';
import { type CommandSpec, QUIET } from '../command/command.ts';
import { EXIT_FAILED, EXIT_OK } from '../terminal/explain.ts';
import { columns, plural, print, printJson } from '../terminal/output.ts';
import { checkBuyers } from './buyers.ts';
import type { Check } from './check.ts';
import { checkClocks } from './clocks.ts';
import { checkPorts } from './ports.ts';
import { checkPostgres } from './postgres.ts';
import { checkRedis } from './redis.ts';
import { checkRuntime } from './runtime.ts';

export const doctor: CommandSpec = {
  name: 'doctor',
  summary: 'check what a node needs: Node.js, Redis, Postgres, clocks, ports',
  details:
    'Changes nothing but trial keys in Redis, which it removes. Each check says what was found and what to do about it. Exit code 1 if a check fails. A warning is ' +
    'about something that works now and may cause trouble later.',
  // All of them, although it uses few: a node that refuses its settings is not ready to serve.
  settings: settingsFor('node'),
  defaults: QUIET,
  examples: [
    'stockade doctor',
    'REDIS_URL=redis://localhost DATABASE_URL=postgres://localhost/shop \\',
    '  stockade doctor --json',
  ],
  async run({ config, json }) {
    const checks = await checkAll(config);
    const failed = checks.filter(({ status }) => status === 'fail').length;
    const warned = checks.filter(({ status }) => status === 'warn').length;
    if (json) printJson({ ok: failed === 0, failed, warned, checks });
    else print(doctorText(checks, failed, warned));
    return failed === 0 ? EXIT_OK : EXIT_FAILED;
  },
};

async function checkAll(config: Config): Promise<Check[]> {
  const [runtime, redis, postgres, ports] = await Promise.all([
    checkRuntime(config),
    checkRedis(config.redisUrl, config.keyPrefix),
    checkPostgres(config),
    checkPorts(config),
  ]);
  const clocks = checkClocks([redis.clock, postgres.clock].filter((clock) => clock !== undefined));
  return [...runtime, ...redis.checks, ...postgres.checks, ...clocks, ...checkBuyers(config), ...ports];
}

function doctorText(checks: readonly Check[], failed: number, warned: number): string {
  const rows = checks.flatMap(({ group, name, status, found, advice }) => [
    [status, group, name, found],
    ...(advice === undefined ? [] : [['', '', '', `-> ${advice}`]]),
  ]);
  const verdict =
    failed > 0
      ? `${plural(failed, 'check')} failed, ${plural(warned, 'warning')}.`
      : `Ready to serve, ${plural(warned, 'warning')}.`;
  return `${columns(rows)}\n\n${verdict}`;
}
