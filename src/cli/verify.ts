import { Option } from 'commander';
import { StockadeError } from '../engine/errors.ts';
import { rest } from '../lib/rest.ts';
import { hasArchived, MAX_PAGE_SALES, salePages } from '../operations/sale-list.ts';
import {
  type SaleOperations,
  UnknownSale,
  type VerifyOptions,
  type VerifyReport,
} from '../operations/sale-operations.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from './command/command.ts';
import { confirmation, YES_OPTION } from './command/confirm.ts';
import { withOperations } from './command/open-operations.ts';
import { describe, EXIT_FAILED, EXIT_OK, type ExitCode, UsageError } from './terminal/explain.ts';
import { reportText } from './terminal/identity-text.ts';
import { invokedAs } from './terminal/invoked-as.ts';
import { needWholeOutput, note, number, plural, print, printJson, visible } from './terminal/output.ts';
import { watchSignals } from './terminal/signals.ts';
import { VerifyAlarms } from './verify-alarms.ts';

const WATCH_EVERY_S = 5;
const MAX_WATCH_S = 86_400;
/** Faults that are listed before a repair, so that the question stays on the screen. */
const MAX_TOLD_FAULTS = 10;

export const verify: CommandSpec = {
  name: 'verify [sale]',
  summary: 'prove that no unit was lost or sold twice, for one sale or all that are not archived',
  details:
    'Counts every unit. Sold and unsold units in Postgres must make up what the sale began with; the unsold units must ' +
    'be in the segments, in the order logs or on their way between them. Each difference is listed with its cause. Exit ' +
    'code 1 if there is a fault. Archived sales are verified only by name.\n\n' +
    '--repair repairs differences that have a proven cause in Redis, says what it did, and verifies again. It changes ' +
    'Postgres only to finish changes that were under way there. --watch verifies again and again until Ctrl-C, also ' +
    'while the sale sells; exit code 1 if there was a fault at any time. With --json it prints one object each time.',
  options: [
    new Option('--repair', 'repair differences that have a proven cause'),
    YES_OPTION,
    new Option('--watch', 'verify again and again until Ctrl-C'),
    new Option(
      '--every <seconds>',
      `with --watch: seconds between two checks, 1 to ${MAX_WATCH_S} (default: ${WATCH_EVERY_S})`,
    ),
  ],
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: [
    'stockade verify',
    'stockade verify tickets --json',
    'stockade verify tickets --watch --every 10',
    'stockade verify tickets --repair',
  ],
  async run({ config, log, json, args, options }) {
    const what = { saleId: args[0], repair: options.repair === true };
    if (options.every !== undefined && options.watch !== true) {
      throw new UsageError('--every says how often --watch verifies: give --watch too, or leave --every out');
    }
    const everyS = parseSeconds(options.every ?? WATCH_EVERY_S);
    const confirm = what.repair
      ? confirmation(`repair ${what.saleId ?? 'all sales'}`, options, { saysSo: true })
      : undefined;
    // Exit code 0 says that there was no fault, also in what nobody has read.
    needWholeOutput();
    return withOperations({ config, log }, async ({ sales }) => {
      await confirm?.(async () => told(await verifySales(sales, { ...what, repair: false })));
      if (options.watch === true) return watch(sales, what, everyS, json);
      const reports = await verifySales(sales, what);
      const ok = reports.every((report) => report.ok);
      if (json) printJson(what.saleId === undefined ? { ok, sales: reports } : reports[0]!);
      else print(reports.length === 0 ? NONE : reports.map(reportText).join('\n'));
      if (what.saleId === undefined && !json) await noteArchived(sales);
      return ok ? EXIT_OK : EXIT_FAILED;
    });
  },
};

const NONE = 'There are no sales.';

/** Nobody shall believe that all sales that ever were are ok. */
async function noteArchived(sales: SaleOperations): Promise<void> {
  if (await hasArchived((query) => sales.list(query)))
    note(
      `Archived sales are not among them: \`${invokedAs()} verify <sale>\` verifies one, and \`${invokedAs()} sale list --archived only\` names them.`,
    );
}

/** As the console says it. Empty if there is nothing to repair. */
function told(reports: readonly VerifyReport[]): string[] {
  const faults = reports.flatMap(({ saleId, differences }) =>
    differences.filter(({ isFault }) => isFault).map(({ what }) => `${saleId}: ${what}`),
  );
  if (faults.length === 0) return [];
  return [
    `${plural(faults.length, 'fault')} found:`,
    ...faults.slice(0, MAX_TOLD_FAULTS).map((fault) => `  ${fault}`),
    ...(faults.length > MAX_TOLD_FAULTS ? [`  and ${number(faults.length - MAX_TOLD_FAULTS)} more`] : []),
    'The sales are verified again, and the stores are changed where a cause is proven. What is not proven stays.',
    'Lost writes are repaired by a rebuild, during which buyers wait.',
  ];
}

interface Wanted extends VerifyOptions {
  /** `undefined` for all sales. */
  readonly saleId: string | undefined;
}

function parseSeconds(text: unknown): number {
  const seconds = Number(text);
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= MAX_WATCH_S) return seconds;
  throw new UsageError(
    `--every must be a whole number of seconds, 1 to ${MAX_WATCH_S}; it is ${String(text)}`,
  );
}

async function verifySales(sales: SaleOperations, wanted: Wanted): Promise<VerifyReport[]> {
  const reports: VerifyReport[] = [];
  for await (const report of reportsOf(sales, wanted)) reports.push(report);
  return reports;
}

async function* reportsOf(sales: SaleOperations, { saleId, repair }: Wanted): AsyncGenerator<VerifyReport> {
  const verify = (id: string) => sales.verify(id, repair ? { repair } : {});
  if (saleId !== undefined) return yield await verify(saleId);
  for await (const page of salePages((query) => sales.list(query), { limit: MAX_PAGE_SALES }))
    for (const { id } of page.sales) {
      const report = await verify(id).catch(ofDeletedSale);
      if (report) yield report;
    }
}

/** A sale may be deleted after the page with it was read. */
function ofDeletedSale(error: unknown): undefined {
  if (!(error instanceof UnknownSale)) throw error;
}

/**
 * Verifies until a signal. If a store or the node does not answer for a while, it prints that and tries again. A fault that was found
 * before in the same check counts all the same.
 */
async function watch(
  sales: SaleOperations,
  wanted: Wanted,
  everyS: number,
  json: boolean,
): Promise<ExitCode> {
  const interruption = watchSignals();
  const alarms = new VerifyAlarms();
  let code: ExitCode = EXIT_OK;
  try {
    for (let isFirst = true; !interruption.signal.aborted; isFirst = false) {
      const at = new Date().toISOString();
      const reports: VerifyReport[] = [];
      let away: unknown;
      try {
        for await (const report of reportsOf(sales, wanted)) reports.push(report);
      } catch (error) {
        if (isFirst || !isAway(error)) throw error;
        away = error;
      }
      // Every report is judged, also after the first alarm.
      const isAlarm = reports.map((report) => alarms.judge(report)).includes(true);
      if (isAlarm) code = EXIT_FAILED;
      if (isAlarm || away === undefined) tellCheck(at, reports, isAlarm, json);
      if (away !== undefined) note(visible(`${at} not verified: ${describe(away)}`));
      await rest(everyS * 1_000, interruption.signal);
    }
    return code;
  } finally {
    interruption.release();
  }
}

function tellCheck(at: string, reports: readonly VerifyReport[], isAlarm: boolean, json: boolean): void {
  if (json) printJson({ at, ok: !isAlarm, sales: reports });
  else print(`${at} ${reports.length === 0 ? NONE : reports.map(reportText).join('\n')}`);
}

const isAway = (error: unknown) =>
  !(error instanceof StockadeError) || error.code === 'unavailable' || error.code === 'no_node';
