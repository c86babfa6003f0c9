import { availableParallelism } from 'node:os';
import type { Config } from '../../config/config.ts';
import type { RunningNode } from '../../node/node.ts';
import type { VerifyReport } from '../../operations/sale-operations.ts';
import { EXIT_FAILED, EXIT_OK, type ExitCode } from '../terminal/explain.ts';
import { identityText } from '../terminal/identity-text.ts';
import { columns, number, plural } from '../terminal/output.ts';
import type { Verdict } from './judge.ts';
import { type Scenario, scenarioName } from './scenario.ts';

/** What `--json` prints. Scripts rely on its fields, so they must not change. */
export interface DemoReport extends Scenario, Verdict {
  readonly scenario: string;
  readonly saleId: string;
  readonly backend: string;
  readonly database: string;
  readonly workers: number;
  readonly cores: number;
  readonly report: VerifyReport;
}

export function demoReport(
  scenario: Scenario,
  verdict: Verdict,
  report: VerifyReport,
  { backendName, databaseName }: Pick<RunningNode, 'backendName' | 'databaseName'>,
  { workers }: Pick<Config, 'workers'>,
): DemoReport {
  return {
    scenario: scenarioName(scenario),
    saleId: report.saleId,
    ...scenario,
    ...verdict,
    backend: backendName,
    database: databaseName,
    workers,
    cores: availableParallelism(),
    report,
  };
}

export function demoExitCode({ holds }: Pick<Verdict, 'holds'>): ExitCode {
  return holds ? EXIT_OK : EXIT_FAILED;
}

export function demoText(demo: DemoReport): string {
  const rows: [string, string][] = [
    ['requests', `${number(demo.requests)} by ${plural(demo.concurrency, 'client')}, seed ${demo.seed}`],
    ['requests/s', number(demo.requestsPerSecond)],
    ['latency', `p50 ${demo.p50Ms} ms, p99 ${demo.p99Ms} ms`],
    ['accepted', number(demo.accepted)],
    ...Object.entries(demo.refused).map(([code, times]): [string, string] => [
      `refused: ${code}`,
      number(times),
    ]),
    ['orders', `${number(demo.committed)} in ${demo.database}; ${number(demo.expected)} could be sold`],
    ['distinct buyers', number(demo.distinctBuyers)],
    ['oversold', number(demo.oversold)],
    ['undersold', number(demo.undersold)],
    ['verify', demo.verify],
    ...demo.report.identities.map((identity): [string, string] => [
      `  ${identity.name}`,
      identityText(identity),
    ]),
    ...demo.report.findings.map((finding): [string, string] => ['  found', finding]),
  ];
  return [columns(rows), '', verdictText(demo), measuredText(demo)].join('\n');
}

/** Whether the promises hold, in a sentence. */
export function verdictText({ holds, failures, committed, distinctBuyers }: DemoReport): string {
  return holds
    ? `Holds: exactly ${plural(committed, 'unit')} went to ${plural(distinctBuyers, 'buyer')}.`
    : `DOES NOT HOLD: ${failures.join('; ')}.`;
}

function measuredText({ backend, database, workers, cores }: DemoReport): string {
  return (
    `Measured with client and server (${plural(workers, 'worker')}; ${backend}, ${database}) on the same machine with ` +
    `${plural(cores, 'core')}: the clients' own work is part of every figure.`
  );
}
