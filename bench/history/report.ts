/** The results of a run, as tables and as one object. */
import { columns } from '../../src/cli/terminal/output.ts';
import { count, rounded } from '../support/figures.ts';
import { type Machine, machineText } from '../support/machine.ts';
import { parametersText } from '../support/options.ts';
import type { BenchResult } from '../support/run.ts';
import { type HistoryParameters, OPTIONS } from './options.ts';
import type { Measured } from './run-all.ts';

/** Most that an operation may cost with the history, relative to an empty database. */
const BAR = 1.3;
const COMMIT_BAR = 1.1;
const OPERATOR_BAR_MS = 1_000;
const SHOWN_ROUTES = 8;

export function report(
  { filled, operations, timed: { routes, commands }, exported }: Measured,
  parameters: HistoryParameters,
  machine: Machine,
): BenchResult {
  const [worst] = routes;
  const barOf = (name: string) => (name === 'commit' ? COMMIT_BAR : BAR);
  const met = (isMet: boolean) => (isMet ? 'met' : 'not met');
  const { orders, sales } = parameters;
  const text = [
    machineText(machine),
    parametersText(OPTIONS, parameters),
    '',
    `${count(orders)} orders of ${count(sales)} ended sales, ${filled.gigabytes} GB in Postgres`,
    `stockade migrate: index in ${filled.indexS} s, live orders counted in ${filled.countS} s`,
    '',
    columns(
      operations.map(({ name, history, empty, growth }) => [
        name,
        ...[history.cpu, empty.cpu, history.wall, empty.wall].map((ms) => ms.toFixed(2)),
        growth.toFixed(2),
        `≤ ${barOf(name).toFixed(2)} ${met(growth <= barOf(name))}`,
      ]),
      {
        head: ['operation', 'CPU ms, history', 'empty', 'wall ms, history', 'empty', 'growth', 'bar'],
        align: ['left', 'right', 'right', 'right', 'right', 'right', 'left'],
      },
    ),
    '',
    columns(
      routes.slice(0, SHOWN_ROUTES).map(({ what, ms }) => [what, String(ms)]),
      { head: [`slowest of ${routes.length} routes`, 'ms'], align: ['left', 'right'] },
    ),
    `Bar: ≤ ${OPERATOR_BAR_MS} ms ${met(worst!.ms <= OPERATOR_BAR_MS)}`,
    '',
    columns(
      commands.map(({ what, ms }) => [what, String(ms)]),
      { head: [`${commands.length} commands, with the start of Node`, 'ms'], align: ['left', 'right'] },
    ),
    `Bar: ≤ ${OPERATOR_BAR_MS} ms ${met(commands[0]!.ms <= OPERATOR_BAR_MS)}`,
    '',
    columns(
      exported.map((one) => [count(one.orders), one.seconds.toFixed(1), String(one.peakMegabytes)]),
      { head: ['orders exported', 's', 'node, MB at most'], align: ['right', 'right', 'right'] },
    ),
  ];
  const growths = Object.fromEntries(
    operations.map(({ name, growth }) => [`${name}Growth`, rounded(growth, 4)]),
  );
  return {
    text: text.join('\n'),
    json: {
      orders,
      sales,
      worstOperatorMs: worst!.ms,
      worstOperator: worst!.what,
      worstCommandMs: commands[0]!.ms,
      ...growths,
      filled,
      operations,
      routes,
      commands,
      exported,
      parameters,
      machine,
    },
  };
}
