/** The results of a run, as tables and as one object. */
import { columns } from '../../src/cli/terminal/output.ts';
import { count, decimals } from '../support/figures.ts';
import { type Machine, machineText } from '../support/machine.ts';
import { parametersText } from '../support/options.ts';
import type { BenchResult } from '../support/run.ts';
import type { BesideSilent } from './beside-silent.ts';
import { OPTIONS, type OverloadParameters } from './options.ts';
import { type Overload, type Percentiles, SPANS } from './overload.ts';

/** The promised limit for the time from the end of the overload to the former rate. */
const RECOVERY_BAR_MS = 1_000;

export function report(
  overload: Overload,
  silent: BesideSilent,
  parameters: OverloadParameters,
  machine: Machine,
): BenchResult {
  const { capacityPerSecond, recoveryMs, busyWithoutRetryAfter, generatorCores } = overload;
  const hasRecovered = recoveryMs !== undefined && recoveryMs <= RECOVERY_BAR_MS;
  const text = [
    machineText(machine),
    parametersText(OPTIONS, parameters),
    '',
    `capacity: ${count(capacityPerSecond)} accepted orders/s (one lane, Redis ${parameters.delayMs} ms late)`,
    ...overloadTable(overload),
    '',
    `Back at 90 % of the former rate: ${recoveryMs ?? 'not within the measured'} ms after the end of the load (bar: ≤ ${RECOVERY_BAR_MS} ms ${hasRecovered ? 'met' : 'not met'})`,
    `busy without Retry-After: ${busyWithoutRetryAfter}; the buyers took ${generatorCores.toFixed(2)} cores`,
    '',
    ...silentTable(silent, parameters),
    '',
    'All other answers were as expected, and verify found every sale in order.',
  ];
  return { text: text.join('\n'), json: { overload, silent, parameters, machine } };
}

function overloadTable({ spans, capacityPerSecond }: Overload): string[] {
  const row = (title: string, of: (name: (typeof SPANS)[number]) => string | undefined) => [
    title,
    ...SPANS.map(of),
  ];
  const times = ({ p50Ms, p99Ms }: Percentiles) =>
    p50Ms === undefined ? undefined : `${decimals(p50Ms, 1)} / ${decimals(p99Ms, 1)}`;
  return [
    columns(
      [
        row('asked/s', (name) => count(spans[name].offeredPerSecond)),
        row('times the capacity', (name) => decimals(spans[name].offeredPerSecond / capacityPerSecond, 1)),
        row('accepted/s', (name) => count(spans[name].acceptedPerSecond)),
        row('503 busy/s', (name) => count(spans[name].busyPerSecond)),
        row('503 unknown/s', (name) => count(spans[name].unknownPerSecond)),
        row('not sent, for want of a connection', (name) => count(spans[name].unsent)),
        row('accepted, p50 / p99 ms', (name) => times(spans[name].accepted)),
        row('busy, p50 / p99 ms', (name) => times(spans[name].busy)),
        row('sold out, p50 / p99 ms', (name) => times(spans[name].soldOut)),
        row('  answered so, of those requests', (name) => decimals(spans[name].soldOutShare, 3)),
        row('not started, p50 / p99 ms', (name) => times(spans[name].notStarted)),
        row('resident memory, peak MB', (name) => count(spans[name].peakResidentMb)),
      ],
      { head: ['', ...SPANS], align: ['left', 'right', 'right', 'right'] },
    ),
  ];
}

function silentTable(silent: BesideSilent, { pipelining }: OverloadParameters): string[] {
  const { idle, slow, held, rateRatio, p99Ratio, residentMb } = silent;
  const row = (title: string, way: 'without' | 'with') => [
    title,
    count(silent[way].perSecond),
    decimals(silent[way].p50Ms, 2),
    decimals(silent[way].p99Ms, 2),
    residentMb[way],
  ];
  return [
    `normal buyers beside ${count(idle)} idle and ${count(slow)} slow connections${pipelining > 0 ? ` and ${count(pipelining)} pipelines` : ''} (${count(held)} open, at least)`,
    columns([row('without', 'without'), row('with', 'with')], {
      head: ['', 'committed/s', 'p50 ms', 'p99 ms', 'resident MB'],
      align: ['left', 'right', 'right', 'right', 'right'],
    }),
    `with, relative to without: ${rateRatio.toFixed(2)} of the rate, ${p99Ratio.toFixed(2)} of the p99`,
  ];
}
