import { columns } from '../../src/cli/terminal/output.ts';
import { count, rounded } from '../support/figures.ts';
import { type Machine, machineText } from '../support/machine.ts';
import { median } from '../support/median.ts';
import { parametersText } from '../support/options.ts';
import type { BenchResult } from '../support/run.ts';
import { OPTIONS, type StartParameters } from './options.ts';
import type { Measured, Starts } from './stage.ts';

/** The promised limits. */
const STORES_MS = 1_500;
/** Of the embedded default, where PGlite takes two of the three seconds. */
const EMBEDDED_MS = 3_000;
const CREATE_MS = 8;
const IDLE_MS_PER_SECOND = 20;

export function report(
  { starts, idle, memory }: Measured,
  parameters: StartParameters,
  machine: Machine,
): BenchResult {
  const ms = (name: keyof Starts) => Math.round(median(starts[name]));
  const rows = [
    ['Redis and Postgres', ms('storesFirst'), ms('storesAgain'), bar(ms('storesAgain'), STORES_MS)],
    ['no store (embedded)', ms('embeddedFirst'), ms('embeddedAgain'), bar(ms('embeddedAgain'), EMBEDDED_MS)],
    ['PGlite alone', ms('pgliteFirst'), ms('pgliteAgain'), undefined],
  ].map((row) => row.map((cell) => (typeof cell === 'number' ? count(cell) : cell)));
  const createMs = rounded(median(idle.createMs), 1);
  const nodeMs = rounded(idle.nodeMsPerSecond, 1);
  const perConnection = (memory.connected - memory.before) / parameters.connections;
  const megabytes = (bytes: number) => count(bytes / 1e6);
  const text = [
    machineText(machine),
    parametersText(OPTIONS, parameters),
    '',
    columns(rows, {
      head: ['start with', 'first ms', 'again ms', 'bar, again'],
      align: ['left', 'right', 'right', 'left'],
    }),
    '',
    `A sale of eight segments is created in ${createMs} ms (bar ${bar(createMs, CREATE_MS)}).`,
    `An idle node with ${count(parameters.sales)} sales takes ${nodeMs} ms of processor time a second (bar ${bar(nodeMs, IDLE_MS_PER_SECOND)}),`,
    `  Redis ${rounded(idle.redisMsPerSecond, 1)} ms, Postgres ${rounded(idle.postgresMsPerSecond, 1)} ms.`,
    `Its memory is ${megabytes(memory.before)} MB, and ${megabytes(memory.connected)} MB with ${count(parameters.connections)} idle connections:`,
    `  ${rounded(perConnection / 1_000, 1)} kB for each.`,
  ];
  const json = {
    startMs: Object.fromEntries((Object.keys(starts) as (keyof Starts)[]).map((name) => [name, ms(name)])),
    createMs,
    idle: { ...idle, createMs: undefined },
    memory: { ...memory, bytesPerConnection: Math.round(perConnection) },
    parameters,
    machine,
  };
  return { text: text.join('\n'), json };
}

function bar(value: number, limit: number): string {
  return `≤ ${count(limit)} ms ${value <= limit ? 'met' : 'not met'}`;
}
