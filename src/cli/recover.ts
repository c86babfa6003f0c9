import { setTimeout as delay } from 'node:timers/promises';
import { Option } from 'commander';
import { StockadeError } from '../engine/errors.ts';
import type { RecoverOperations, Recovery } from '../operations/recover-operations.ts';
import type { Adoption } from '../shop/ownership.ts';
import { type CommandSpec, type Invocation, QUIET, SALE_SETTINGS } from './command/command.ts';
import { withOperations } from './command/open-operations.ts';
import { EXIT_OK, type ExitCode, UsageError } from './terminal/explain.ts';
import { columns, note, plural, print, printJson } from './terminal/output.ts';
import { type Progress, progressBar } from './terminal/progress.ts';

const LOOK_MS = 200;

export const recover: CommandSpec = {
  name: 'recover [sale]',
  summary: 'build the stock of a sale anew from Postgres',
  details:
    'Nodes do this by themselves when Redis has lost data; this does it now. Orders that are in the logs still are saved ' +
    'first. Buyers wait meanwhile. It says which accepted orders were lost, as far as the nodes remember them.\n\n' +
    '--adopt, without a sale: the Redis and the database of these settings belong together from now on, whatever either ' +
    'says of it. For a database that was made anew or a KEY_PREFIX that was changed; stop all nodes before. Sales in that ' +
    'Redis that have the name of one of this database and are not the same are removed, with what is in their logs. The ' +
    'nodes build the sales when they start.',
  options: [new Option('--adopt', 'make these stores belong together, and recover nothing')],
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: ['stockade recover tickets', 'stockade recover tickets --json', 'stockade recover --adopt'],
  async run({ config, log, json, args, options }) {
    const [saleId] = args;
    if (options.adopt === true) return adopt({ config, log, json }, saleId);
    if (saleId === undefined)
      throw new UsageError('name the sale that is to be built anew, such as: stockade recover tickets');
    const done = await withOperations({ config, log }, (operations) => follow(operations, saleId));
    if (json) printJson(done);
    else print(recoveryText(done));
    return EXIT_OK;
  },
};

async function adopt(
  { config, log, json }: Pick<Invocation, 'config' | 'log' | 'json'>,
  saleId: string | undefined,
): Promise<ExitCode> {
  if (saleId !== undefined) throw new UsageError('--adopt is for all sales together: name none');
  if (config.opsUrl !== undefined) {
    throw new UsageError(
      '--adopt works on the stores themselves: take OPS_URL out, and set what the nodes will have',
    );
  }
  const { adoptStores } = await import('../node/services.ts');
  const adoption = await adoptStores(config, log);
  if (json) printJson(adoption);
  else print(adoptionText(adoption));
  return EXIT_OK;
}

export function adoptionText({ before, keyPrefixBefore, discarded }: Adoption): string {
  return [
    'These stores belong together now. Start the nodes: they build the sales.',
    `owner before       ${before ?? 'none'}`,
    `KEY_PREFIX before  ${keyPrefixBefore ?? 'none'}`,
    `sales removed      ${discarded.length === 0 ? 'none' : discarded.join(', ')}`,
  ].join('\n');
}

type Done = Extract<Recovery, { state: 'done' }>;

/** Begins, and looks until it is done. @throws StockadeError `not_recovered` */
async function follow(operations: RecoverOperations, saleId: string): Promise<Done> {
  let bar: Progress | undefined;
  let shown = '';
  try {
    for (let now = await operations.recover(saleId); ; now = await operations.recovery(saleId)) {
      if (now.state === 'done') return now;
      if (now.state !== 'running') throw notRecovered(now);
      // Until it is known how much there is, there is nothing to show.
      if (now.step !== shown && (now.total > 0 || now.step === 'wait')) {
        bar?.stop();
        bar = show(now);
        shown = now.step;
      }
      bar?.update(now.done, now.total);
      await delay(LOOK_MS);
    }
  } finally {
    bar?.stop();
  }
}

const COUNTED = {
  salvage: 'logs read',
  load: 'orders loaded',
  publish: 'steps of the publication',
  names: 'lists of lost orders from the nodes',
} as const;

function show({ saleId, step, total }: Extract<Recovery, { state: 'running' }>): Progress | undefined {
  if (step !== 'wait') return progressBar(total, COUNTED[step]);
  note(`Another process builds ${saleId}; waiting for it …`);
  return undefined;
}

function notRecovered(now: Exclude<Recovery, { state: 'running' | 'done' }>): StockadeError {
  const why = now.state === 'failed' ? now.problem : 'the node has been started anew meanwhile';
  return new StockadeError(
    'not_recovered',
    `sale ${now.saleId} was not built: ${why}. Sync goes on with it by itself; or recover it again, which goes on where ` +
      'this has stopped',
  );
}

export function recoveryText(done: Done): string {
  const { saleId, generation, tookMs, losses } = done;
  const lost = losses.reduce((sum, { orders }) => sum + orders, 0);
  const named = losses.flatMap((loss) => loss.named);
  const rows = named.map(({ orderId, buyerId, quantity, segment }) => [orderId, buyerId, quantity, segment]);
  return [
    `${saleId}: built as generation ${generation} in ${(tookMs / 1_000).toFixed(1)} s. ${sourcesText(done)}`,
    lost === 0
      ? 'No accepted order is known to be lost.'
      : `Lost: at least ${plural(lost, 'accepted order')}, ${named.length} of them known by name.`,
    ...(rows.length === 0 ? [] : [columns(rows, { head: ['order', 'buyer', 'units', 'segment'] })]),
  ].join('\n');
}

function sourcesText({ loadedBuyers, salvagedOrders = 0, rejectedOrders = 0 }: Done): string {
  if (loadedBuyers === undefined) return 'Another process has done it meanwhile.';
  const refused = rejectedOrders === 0 ? '' : `, of which Postgres refused ${rejectedOrders}`;
  return `Buyers loaded: ${loadedBuyers}; orders saved from the logs: ${salvagedOrders}${refused}.`;
}
