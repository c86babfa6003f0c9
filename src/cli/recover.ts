import { setTimeout as delay } from 'node:timers/promises';
import { Option } from 'commander';
import type { Config } from '../config/config.ts';
import { describeConfig } from '../config/describe.ts';
import { StockadeError } from '../engine/errors.ts';
import type { RecoverOperations, Recovery } from '../operations/recover-operations.ts';
import type { SaleStatus } from '../operations/sale-operations.ts';
import type { Adoption } from '../shop/ownership.ts';
import { type CommandSpec, type Invocation, QUIET, SALE_SETTINGS } from './command/command.ts';
import { confirmation, YES_OPTION } from './command/confirm.ts';
import { mayPass } from './command/may-pass.ts';
import { withOperations } from './command/open-operations.ts';
import { EXIT_OK, type ExitCode, UsageError } from './terminal/explain.ts';
import { invokedAs } from './terminal/invoked-as.ts';
import { columns, note, number, plural, print, printJson } from './terminal/output.ts';
import { type Progress, progressBar } from './terminal/progress.ts';

const LOOK_MS = 200;
/** How long a node may give no answer while it rebuilds. */
const SILENT_MAX_MS = 60_000;

export const recover: CommandSpec = {
  name: 'recover [sale]',
  summary: 'rebuild the stock of a sale from Postgres',
  details:
    'Nodes do this by themselves when Redis has lost data; this command does it now. Orders that are still in the logs are ' +
    'saved first. Buyers wait meanwhile. It lists the accepted orders that were lost, as far as the nodes remember them.\n\n' +
    '--adopt, without a sale, marks the Redis and the database of these settings as belonging together, even if their own ' +
    'marks say otherwise. Use it after the database was created again or KEY_PREFIX was changed, and stop all nodes ' +
    'first. If that Redis holds another sale under the id of a sale in this database, the other sale and its logs are removed ' +
    'from Redis. The nodes rebuild the sales when they start.',
  options: [new Option('--adopt', 'make these stores belong together, and recover nothing'), YES_OPTION],
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: ['stockade recover tickets', 'stockade recover tickets --json', 'stockade recover --adopt'],
  async run({ config, log, json, args, options }) {
    const [saleId] = args;
    if (options.adopt === true) return adopt({ config, log, json, options }, saleId);
    if (saleId === undefined)
      throw new UsageError(`name the sale to rebuild, such as: ${invokedAs()} recover tickets`);
    const confirm = confirmation(`rebuild ${saleId} from Postgres`, options);
    const done = await withOperations({ config, log }, async ({ sales }) => {
      await confirm(async () => told(await sales.show(saleId)));
      return follow(sales, saleId);
    });
    if (json) printJson(done);
    else print(recoveryText(done));
    return EXIT_OK;
  },
};

/** As the console says it. */
function told({ archivedAt, segments, committedOrders, generation }: SaleStatus): string[] {
  if (archivedAt !== undefined) return [];
  return [
    `All ${plural(segments, 'segment')} are frozen, their logs are saved to Postgres, and ${plural(committedOrders, 'order')} ${committedOrders === 1 ? 'is' : 'are'} loaded into new segments: generation ${number(generation)} becomes ${number(generation + 1)}.`,
    'Buyers wait until that is done. Purchases whose time is over by then are refused as unavailable.',
    'Nodes do this by themselves when Redis has lost data: do it by hand only if the stores disagree and a repair does not help.',
  ];
}

async function adopt(
  { config, log, json, options }: Omit<Invocation, 'args'>,
  saleId: string | undefined,
): Promise<ExitCode> {
  if (saleId !== undefined) throw new UsageError('--adopt is for all sales together: name no sale');
  if (config.opsUrl !== undefined) {
    throw new UsageError(
      '--adopt works on the stores themselves: unset OPS_URL, and set REDIS_URL and DATABASE_URL as for the nodes',
    );
  }
  const confirm = confirmation('make these stores belong together', options, { saysSo: true });
  await confirm(() => toldOfAdoption(config));
  const { adoptStores } = await import('../node/services.ts');
  const adoption = await adoptStores(config, log);
  if (json) printJson(adoption);
  else print(adoptionText(adoption));
  return EXIT_OK;
}

function toldOfAdoption(config: Config): string[] {
  const { REDIS_URL, DATABASE_URL } = describeConfig(config);
  return [
    `The stock: ${REDIS_URL ?? 'in each node, without Redis'}, KEY_PREFIX ${config.keyPrefix}`,
    `The orders: ${DATABASE_URL ?? `PGlite in ${config.dataDir}`}`,
    'If that Redis holds another sale under the id of a sale in this database, the other sale and its logs are removed from Redis.',
    'All nodes that use either of them must have stopped.',
  ];
}

function adoptionText({ before, keyPrefixBefore, discarded }: Adoption): string {
  return [
    'These stores belong together now. Start the nodes: they rebuild the sales.',
    `owner before       ${before ?? 'none'}`,
    `KEY_PREFIX before  ${keyPrefixBefore ?? 'none'}`,
    `sales removed      ${discarded.length === 0 ? 'none' : discarded.join(', ')}`,
  ].join('\n');
}

type Done = Extract<Recovery, { state: 'done' }>;

/** Starts the rebuild and shows its progress until it is done. @throws StockadeError `not_recovered` */
async function follow(operations: RecoverOperations, saleId: string): Promise<Done> {
  let bar: Progress | undefined;
  let shown = '';
  try {
    for (let now = await operations.recover(saleId); ; now = await nextLook(operations, saleId)) {
      if (now.state === 'done') return now;
      if (now.state !== 'running') throw notRecovered(now);
      // A bar needs the total, which is not known at the beginning of a step.
      if (now.step !== shown && (now.total > 0 || now.step === 'wait')) {
        bar?.stop();
        bar = show(now);
        shown = now.step;
      }
      bar?.update(now.done, now.total);
    }
  } finally {
    bar?.stop();
  }
}

/** The rebuild goes on while nobody can be asked how far it is. @throws the last error after SILENT_MAX_MS */
async function nextLook(operations: RecoverOperations, saleId: string): Promise<Recovery> {
  const began = performance.now();
  for (;;) {
    await delay(LOOK_MS);
    try {
      return await operations.recovery(saleId);
    } catch (error) {
      if (!mayPass(error) || performance.now() - began > SILENT_MAX_MS) throw error;
    }
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
  note(`Another process is rebuilding ${saleId}; waiting for it …`);
  return undefined;
}

function notRecovered(now: Exclude<Recovery, { state: 'running' | 'done' }>): StockadeError {
  const why =
    now.state === 'failed'
      ? now.problem
      : 'the node was restarted meanwhile, or OPS_URL leads to several nodes, of which another one has answered';
  return new StockadeError(
    'not_recovered',
    `sale ${now.saleId} was not rebuilt: ${why}. Sync will continue by itself; or recover the sale again, which continues ` +
      'where this attempt stopped',
  );
}

export function recoveryText(done: Done): string {
  const { saleId, generation, tookMs, losses } = done;
  const lost = losses.reduce((sum, { orders }) => sum + orders, 0);
  const named = losses.flatMap((loss) => loss.named);
  const rows = named.map(({ orderId, buyerId, quantity, segment }) => [
    orderId,
    buyerId,
    number(quantity),
    segment,
  ]);
  return [
    `${saleId}: rebuilt as generation ${number(generation)} in ${(tookMs / 1_000).toFixed(1)} s. ${sourcesText(done)}`,
    lost === 0
      ? 'No accepted order is known to be lost.'
      : `Lost: at least ${plural(lost, 'accepted order')}, ${number(named.length)} of them known by name.`,
    ...(rows.length === 0 ? [] : [columns(rows, { head: ['order', 'buyer', 'units', 'segment'] })]),
  ].join('\n');
}

function sourcesText({ loadedBuyers, salvagedOrders = 0, rejectedOrders = 0 }: Done): string {
  if (loadedBuyers === undefined) return 'Another process has rebuilt it.';
  const refused = rejectedOrders === 0 ? '' : `, of which Postgres rejected ${number(rejectedOrders)}`;
  return `Buyers loaded: ${number(loadedBuyers)}; orders saved from the logs: ${number(salvagedOrders)}${refused}.`;
}
