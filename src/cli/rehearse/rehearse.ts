/**
 * Rehearses a sale on the user's own installation: checks, a sale that nobody hears of, a crowd, and a report.
 *
 *   checks ──fail──> report
 *     └──> nodes ──> leftovers removed ──> sale ──> crowd, watched ──> drain, verify, books ──> sale removed ──> report
 *
 * From the moment the sale exists, every way out of here removes it, also Ctrl-C and errors. If this process is killed, its
 * nodes stop by themselves, and the next rehearsal removes the sale (shadow-sale.ts).
 */
import { access, constants, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Config } from '../../config/config.ts';
import { isLoopback, postgresHost } from '../../config/values/hosts.ts';
import { redisUrls } from '../../config/values/redis-urls.ts';
import { StockadeError } from '../../engine/errors.ts';
import type { BuyerTokens } from '../command/buyer-token.ts';
import { type CommandSpec, type Invocation, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { withOperations } from '../command/open-operations.ts';
import type { Check } from '../doctor/check.ts';
import { checkClocks } from '../doctor/clocks.ts';
import { checkPostgres } from '../doctor/postgres.ts';
import { checkRedis } from '../doctor/redis.ts';
import { checkRuntime } from '../doctor/runtime.ts';
import {
  describe,
  EXIT_FAILED,
  EXIT_NO_GO,
  EXIT_OK,
  type ExitCode,
  NotConfirmed,
  UsageError,
} from '../terminal/explain.ts';
import { note, plural, print, printJson, visible } from '../terminal/output.ts';
import { type Interruption, watchSignals } from '../terminal/signals.ts';
import { type Plan, planFrom, planOptions } from './crowd/plan.ts';
import { ofChecks } from './report/judge.ts';
import { reportPage } from './report/page.ts';
import { type RehearsalReport, reportOf, reportText, type Stage } from './report/report.ts';
import { type Operations, rushOn } from './rush.ts';
import { configOf, type OwnNode, startOwnNode } from './stage/nodes.ts';
import { otherSales, removeShadowSale } from './stage/shadow-sale.ts';
import { refuseFaults, startVictim, type Victim } from './stage/victims.ts';

/** Starts the nodes that will be hurt; what is left of them stops when the work has ended. */
async function withVictims<T>(
  config: Config,
  plan: Plan,
  signal: AbortSignal,
  work: (victims: readonly Victim[]) => Promise<T>,
): Promise<T> {
  const victims: Victim[] = [];
  try {
    for (const kind of plan.faults) {
      signal.throwIfAborted();
      note(`Starting a node for --${kind} …`);
      victims.push(await startVictim(kind, config, plan));
    }
    return await work(victims);
  } finally {
    await Promise.all(victims.map((victim) => victim.stop()));
  }
}

export const rehearse: CommandSpec = {
  name: 'rehearse',
  summary: 'rehearse a sale on your stores: a crowd, and go or no-go with reasons',
  details:
    'Checks what doctor checks, starts nodes of its own on free ports with your settings, creates a sale that nobody hears ' +
    'of (no events, no webhook), sends it a crowd, and compares every answer with the orders in Postgres. At the end it deletes ' +
    'the sale with its orders. Each request is sent when it is due, however slow the answers are. The time of its answer counts ' +
    'from the moment at which it was due.\n\n' +
    'Without REDIS_URL and DATABASE_URL everything runs in one process with embedded stores. With --url the crowd goes to nodes ' +
    'or a gateway that run already; then OPS_URL and OPS_TOKEN, or the stores, are needed to create the sale. Give --yes if the ' +
    'stores are not on this machine, or if other sales are open: the crowd loads them.\n\n' +
    'Exit code 0: go. 3: no-go. If a rehearsal is killed, the next one, or --clean, removes what it has left.',
  options: planOptions,
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: [
    'stockade rehearse',
    'stockade rehearse --stock 10000 --buyers 50000 --rate 2000 --for 30 --report friday.html',
    'stockade rehearse --url https://shop.example --yes    (with OPS_URL set)',
    'stockade rehearse --clean',
  ],
  async run(invocation) {
    const { config, json, options } = invocation;
    const plan = planFrom(options);
    const token = identityOf(config);
    refuseHalf(config, plan);
    refuseFaults(config, plan);
    if (plan.report !== undefined) await refuseUnwritable(plan.report);
    // To remove what is left loads nothing.
    if (options.clean !== true) refuseUnasked(config, plan);
    const interruption = watchSignals();
    try {
      if (options.clean === true) return await clean(invocation, plan, interruption);
      const report = await rehearsal(invocation, plan, token, interruption);
      if (json) printJson(report);
      else print(reportText(report));
      const isKept = plan.report === undefined || (await keep(plan.report, reportPage(report)));
      if (!report.go) return EXIT_NO_GO;
      return isKept && report.isRemoved ? EXIT_OK : EXIT_FAILED;
    } finally {
      interruption.release();
    }
  },
};

/** The tokens that buyers need here; `undefined`: a header names them. @throws UsageError if only others can make them */
export function identityOf({
  buyerAuth,
  jwtSecret,
  jwtAudience,
  jwtIssuer,
}: Config): BuyerTokens | undefined {
  if (buyerAuth === 'header') return undefined;
  if (jwtSecret === undefined)
    throw new UsageError(
      'buyers have tokens of JWT_JWKS_URL here, which only their issuer can make. Set BUYER_AUTH=header to rehearse on nodes of the rehearsal’s own, which then check no tokens',
    );
  return {
    secret: jwtSecret.reveal(),
    ...(jwtAudience !== undefined && { audience: jwtAudience }),
    ...(jwtIssuer !== undefined && { issuer: jwtIssuer }),
  };
}

/** Before the rehearsal, so that its report is not lost. @throws UsageError */
async function refuseUnwritable(file: string): Promise<void> {
  const refused = (why: string) => new UsageError(`--report ${file} can't be written: ${why}`);
  const found = await stat(file).catch(() => undefined);
  if (found?.isDirectory()) throw refused('it is a folder');
  try {
    await access(found ? file : dirname(file), constants.W_OK);
  } catch (error) {
    throw refused(describe(error));
  }
}

/** The verdict was printed before, so an error is only printed: the disk may be full. @returns whether the report is in the file */
async function keep(file: string, page: string): Promise<boolean> {
  try {
    await writeFile(file, page);
    note(`The report is in ${file}.`);
    return true;
  } catch (error) {
    note(`error: the report is not in ${visible(file)}: ${visible(describe(error))}`);
    return false;
  }
}

/** @throws UsageError */
function refuseHalf({ redisUrl, databaseUrl }: Config, { urls, nodes }: Plan): void {
  const isEmbedded = redisUrl === undefined && databaseUrl === undefined;
  if ((redisUrl === undefined) !== (databaseUrl === undefined))
    throw new UsageError(
      'set both REDIS_URL and DATABASE_URL, or neither: a rehearsal needs nodes that share their stores',
    );
  if (urls.length === 0 && isEmbedded && nodes > 1)
    throw new UsageError(
      `--nodes ${nodes} needs REDIS_URL and DATABASE_URL: embedded stores are those of one node`,
    );
}

/** @throws NotConfirmed */
function refuseUnasked({ redisUrl, databaseUrl, opsUrl }: Config, { urls, yes }: Plan): void {
  const reached = [
    ...(redisUrl ? redisUrls(redisUrl.reveal()) : []),
    ...(opsUrl && urls.length > 0 ? [opsUrl] : []),
    ...urls,
  ];
  const hosts = [
    ...reached.map((url) => new URL(url).hostname),
    ...(databaseUrl ? [postgresHost(databaseUrl.reveal())] : []),
  ];
  const elsewhere = hosts.filter((host) => !isLoopback(host));
  if (elsewhere.length === 0 || yes) return;
  throw new NotConfirmed(
    `the crowd loads ${elsewhere.join(', ')}, and whatever sells there: add --yes if it may. Nothing was changed`,
  );
}

async function clean(invocation: Invocation, plan: Plan, interruption: Interruption): Promise<ExitCode> {
  const { config, json } = invocation;
  if (config.databaseUrl === undefined && plan.urls.length === 0) {
    if (json) printJson({ removed: [] });
    else print('Embedded stores of a rehearsal end with it: there is nothing to remove.');
    return EXIT_OK;
  }
  const removed = await withNodes(config, plan, interruption.signal, (nodes) =>
    withOperations(operatorsOf(invocation, nodes), async ({ sales }) =>
      removeLeft(sales, (await otherSales(sales)).left),
    ),
  );
  if (json) printJson({ removed });
  else print(removed.length === 0 ? 'No rehearsal has left anything.' : `Removed ${removed.join(', ')}.`);
  return EXIT_OK;
}

async function removeLeft(sales: Operations['sales'], left: readonly string[]): Promise<readonly string[]> {
  for (const saleId of left) {
    note(`Removing ${saleId}, which a rehearsal that was killed has left …`);
    await removeShadowSale(sales, saleId);
  }
  return left;
}

async function rehearsal(
  invocation: Invocation,
  plan: Plan,
  token: BuyerTokens | undefined,
  interruption: Interruption,
): Promise<RehearsalReport> {
  const { config } = invocation;
  const begunAt = new Date().toISOString();
  const isEmbedded = config.databaseUrl === undefined && plan.urls.length === 0;
  const stage: Stage = {
    saleId: undefined,
    isRemoved: true,
    begunAt,
    nodes: plan.urls,
    backend: undefined,
    database: undefined,
    embedded: isEmbedded,
  };
  note('Checking what the nodes need …');
  const checks = await checkAll(config, plan);
  if (ofChecks(checks).length > 0) return reportOf(stage, plan, checks, undefined);
  return withNodes(config, plan, interruption.signal, (nodes) =>
    withOperations(operatorsOf(invocation, nodes), async (operations) => {
      const others = await otherSales(operations.sales);
      refuseBeside(others, plan);
      await removeLeft(operations.sales, others.left);
      const { saleId, rush, isRemoved } = await withVictims(config, plan, interruption.signal, (victims) =>
        rushOn(operations, {
          config,
          plan,
          token,
          nodes,
          signal: interruption.signal,
          victims,
        }),
      );
      const [{ backend, database } = {}] = nodes as Partial<OwnNode>[];
      const urls = nodes.length > 0 ? nodes.map(({ publicUrl }) => publicUrl) : plan.urls;
      return reportOf({ ...stage, saleId, isRemoved, nodes: urls, backend, database }, plan, checks, rush);
    }),
  );
}

async function checkAll(config: Config, { urls, nodes, faults }: Plan): Promise<Check[]> {
  // Of nodes that run already, only the stores can be looked at from here, if they are known.
  const isOwn = urls.length === 0;
  const [runtime, redis, postgres] = await Promise.all([
    isOwn ? checkRuntime(config) : [],
    isOwn || config.redisUrl ? checkRedis(config.redisUrl, config.keyPrefix) : { checks: [] },
    isOwn || config.databaseUrl
      ? checkPostgres(config, { nodes: nodes + faults.length, deletes: true })
      : { checks: [] },
  ]);
  const clocks = checkClocks(
    [redis, postgres].flatMap((found) => ('clock' in found && found.clock ? [found.clock] : [])),
  );
  return [...runtime, ...redis.checks, ...postgres.checks, ...clocks];
}

/** @throws StockadeError `rehearsing`, NotConfirmed */
function refuseBeside(
  { open, rehearsing }: Awaited<ReturnType<typeof otherSales>>,
  { yes, faults, besideOpenSales }: Plan,
): void {
  if (rehearsing.length > 0)
    throw new StockadeError(
      'rehearsing',
      `another rehearsal is under way on these stores (${rehearsing.join(', ')}): wait until it has ended`,
    );
  if (open.length > 0 && faults.length > 0 && !besideOpenSales)
    throw new NotConfirmed(
      `sales of the shop are open on these stores (${open.slice(0, 5).join(', ')}): add --beside-open-sales to make faults all the same. Nothing was changed`,
    );
  if (open.length > 0 && !yes)
    throw new NotConfirmed(
      `${plural(open.length, 'sale')} of the shop ${open.length === 1 ? 'is' : 'are'} open on these stores (${open.slice(0, 5).join(', ')}), and the crowd would slow ${open.length === 1 ? 'it' : 'them'} down: add --yes if it may. Nothing was changed`,
    );
}

/** Starts the plan's nodes, one after the other, because the first migrates; they stop when the work has ended. */
async function withNodes<T>(
  config: Config,
  { nodes: count }: Plan,
  signal: AbortSignal,
  work: (nodes: readonly OwnNode[]) => Promise<T>,
): Promise<T> {
  const nodes: OwnNode[] = [];
  try {
    if (count > 0) note(`Starting ${plural(count, 'node')} …`);
    while (nodes.length < count) {
      signal.throwIfAborted();
      nodes.push(await startOwnNode(config));
    }
    return await work(nodes);
  } finally {
    await Promise.all(nodes.map((node) => node.stop()));
  }
}

/**
 * How the sale is made, compared and removed: on the stores of own nodes, because any of these may end; through the own node
 * if its stores are embedded; without own nodes, as the configuration says.
 */
function operatorsOf(
  { config, log }: Invocation,
  [node]: readonly OwnNode[],
): Pick<Invocation, 'config' | 'log'> {
  if (node === undefined) return { config, log };
  const isEmbedded = config.databaseUrl === undefined;
  return { config: isEmbedded ? configOf(node, config) : { ...config, opsUrl: undefined }, log };
}
