/**
 * Tries the promises of Stockade: it starts a node, sends it requests of a crowd over real sockets, and compares the answers
 * with the orders in Postgres.
 */
import { randomBytes } from 'node:crypto';
import { Option } from 'commander';
import { opsTokenFile } from '../../config/ops-token.ts';
import { settingsFor } from '../../config/settings.ts';
import { Secret } from '../../config/values/secret.ts';
import type { RunningNode } from '../../node/node.ts';
import type { SaleStatus } from '../../operations/sale-operations.ts';
import type { CommandSpec, Invocation } from '../command/command.ts';
import { describe, EXIT_FAILED, EXIT_OK, type ExitCode, UsageError } from '../terminal/explain.ts';
import { invokedAs } from '../terminal/invoked-as.ts';
import { note, number, plural, print, printJson } from '../terminal/output.ts';
import { progressBar } from '../terminal/progress.ts';
import { startingText } from '../terminal/serve-notes.ts';
import { type Interruption, watchSignals } from '../terminal/signals.ts';
import { type CrowdProgress, sendCrowd } from './crowd.ts';
import { demoDataDir, removeDemoDataDir } from './data-dir.ts';
import { judge } from './judge.ts';
import { canShowOpening, drawOpening, OPENING, OPENING_MS } from './opening.ts';
import { queueVerdictText } from './queue/judge.ts';
import { DemoPage } from './queue/page-server.ts';
import { canDrawQueue, QueuePicture } from './queue/picture.ts';
import { type QueuePlan, queueOptions, queuePlanFrom } from './queue/plan.ts';
import { closeSale, type QueueReport, type QueueScene, showQueue } from './queue/queue-demo.ts';
import { standingText } from './queue/standing.ts';
import { type DemoReport, demoExitCode, demoReport, demoText, verdictText } from './report.ts';
import { type Scenario, scenarioFrom, scenarioOptions } from './scenario.ts';
import { curlSession, drawSession } from './session.ts';
import { settle } from './settle.ts';

const ownDataDir = demoDataDir();
/** Without a terminal, a line says how the queue stands, once in this time. */
const LINE_EVERY_MS = 10_000;

export const demo: CommandSpec = {
  name: 'demo',
  summary: 'sell 100 units to a crowd of 20,000 requests, and count',
  details:
    'Starts a node on free ports and asks it for more units than there are. The node uses REDIS_URL and DATABASE_URL ' +
    'if they are set; otherwise it keeps everything in this process. Exit code 0 only if, by the orders in Postgres, ' +
    'exactly the stock was sold, each unit to a different buyer. At a terminal it begins with a picture of a stock that falls.\n\n' +
    'With --queue it shows a sale with a queue instead, for about a minute: a crowd waits in the lobby, the sale opens, places move ' +
    'on, and offers are accepted, given back or lapse. It prints the address of a page on which you can take a place yourself; if you ' +
    'open the page, the demo stays until Ctrl-C. --stock, --segments, --buyers (default 200 with --queue) and --seed mean the same.',
  options: [
    ...scenarioOptions,
    ...queueOptions,
    new Option('--keep', 'leave the node running afterwards, and print commands to try on it'),
  ],
  settings: [...settingsFor('command', 'Stores', 'Process'), ...(['port', 'opsPort', 'workers'] as const)],
  defaults: { port: 0, opsPort: 0, logLevel: 'warn', dataDir: ownDataDir },
  // The crowd names its buyers in a header, which a node accepts only on a loopback address.
  fixed: { host: '127.0.0.1', opsHost: '127.0.0.1', buyerAuth: 'header' },
  examples: [
    'stockade demo',
    'stockade demo --stock 1 --segments 64 --buyers 5000',
    'stockade demo --keep',
    'stockade demo --queue',
    'stockade demo --queue draw --opens-in 60',
    'REDIS_URL=redis://localhost DATABASE_URL=postgres://localhost/shop \\',
    '  stockade demo --json',
  ],
  async run(invocation) {
    const { queue, opensIn } = invocation.options;
    if (queue === undefined && opensIn !== undefined) throw new UsageError('--opens-in needs --queue');
    const plan = queue === undefined ? undefined : queuePlanFrom(invocation.options);
    const scenario = plan ? undefined : scenarioFrom(invocation.options);
    const keep = invocation.options.keep === true;
    const interruption = watchSignals();
    try {
      if (!scenario) return await sellByQueue(plan!, invocation, interruption);
      return await withNode(invocation, async (node, newSale) => {
        const { opening, report } = await orFailed(
          node,
          runAll(node, scenario, invocation, interruption.signal, newSale),
        );
        if (invocation.json) printJson(report);
        else print(`\n${demoText(report)}`);
        if (!invocation.json) note(`\nTo see a queue, also in a browser: ${invokedAs()} demo --queue`);
        const exitCode = opening?.holds === false ? EXIT_FAILED : demoExitCode(report);
        return keep ? await keepRunning(node, report, invocation, interruption, exitCode) : exitCode;
      });
    } finally {
      if (invocation.config.dataDir === ownDataDir && !keep) await removeDemoDataDir(ownDataDir);
      interruption.release();
    }
  },
};

/** @param work gets the node, and what names a new sale: on the stores of a shop, such a sale is closed afterwards */
async function withNode<T>(
  { config, log }: Pick<Invocation, 'config' | 'log'>,
  work: (node: RunningNode, newSale: () => string) => Promise<T>,
): Promise<T> {
  note(startingText(config));
  const start = performance.now();
  const { startNode } = await import('../../node/node.ts');
  const node = await startNode(config, log);
  note(`Ready after ${((performance.now() - start) / 1_000).toFixed(1)} s at ${node.publicUrl}.`);
  const saleIds: string[] = [];
  const newSale = () => {
    saleIds.push(`demo-${Date.now().toString(36)}`);
    return saleIds.at(-1)!;
  };
  try {
    return await work(node, newSale);
  } finally {
    // It would sell on.
    const isOfShop = config.redisUrl !== undefined || config.databaseUrl !== undefined;
    if (isOfShop) for (const saleId of saleIds) await closeSale(node, saleId);
    await node.stop();
  }
}

/** The demo of the queue. Its page is in a browser, so its buyers are identified by tokens. */
async function sellByQueue(
  plan: QueuePlan,
  invocation: Invocation,
  interruption: Interruption,
): Promise<ExitCode> {
  const secret = randomBytes(32).toString('hex');
  const page = await DemoPage.open(secret);
  const config = {
    ...invocation.config,
    ...({ buyerAuth: 'jwt', jwtSecret: new Secret(secret), corsOrigins: page.origin } as const),
    ...{ jwtJwksUrl: undefined, jwtAudience: undefined, jwtIssuer: undefined },
  };
  try {
    return await withNode({ config, log: invocation.log }, async (node, newSale) => {
      const { signal } = interruption;
      const saleId = newSale();
      const report = await orFailed(node, runQueue(node, plan, { page, saleId, secret, signal }, invocation));
      if (invocation.json) printJson({ ...report, workers: config.workers });
      else print(`\n${queueVerdictText(report)}`);
      const exitCode = report.holds ? EXIT_OK : EXIT_FAILED;
      const keep = invocation.options.keep === true;
      if (!keep && !(page.wasOpened && process.stderr.isTTY)) return exitCode;
      if (plan.order === 'draw') (invocation.json ? note : print)(drawSession(node, report, config));
      const data = keep ? `; the data stays in ${config.dataDir}` : '';
      note(`The node and the page ${page.origin} run until Ctrl-C${data}.`);
      return await untilAsked(node, interruption, exitCode);
    });
  } finally {
    await page.close();
  }
}

async function runQueue(
  node: RunningNode,
  plan: QueuePlan,
  scene: Pick<QueueScene, 'saleId' | 'secret' | 'signal'> & { readonly page: DemoPage },
  { config, json }: Invocation,
): Promise<QueueReport> {
  const picture = !json && canDrawQueue() ? new QueuePicture() : undefined;
  let nextLineAt = 0;
  try {
    return await showQueue(plan, {
      node,
      ...scene,
      invite: (commitment) =>
        note(
          `A sale of ${plural(plan.stock, 'unit')} with a queue (${plan.order}), and a crowd of ${number(plan.buyers)} (seed ${plan.seed}). ` +
            `It opens in ${plan.opensInMs / 1_000} s.\n` +
            (plan.order === 'draw' ? `The draw is bound by the commitment ${commitment}.\n\n` : '\n') +
            `  Open ${scene.page.origin} now, and get a place yourself.\n` +
            `  As an operator: ${node.opsUrl}/console${config.opsToken ? '' : `, with the token in ${opsTokenFile(config)}`}\n`,
        ),
      draw: (standing) => {
        if (picture) picture.draw(standing, plan.buyers);
        else if (!json && performance.now() >= nextLineAt) {
          note(standingText(standing));
          nextLineAt = performance.now() + LINE_EVERY_MS;
        }
      },
    });
  } finally {
    picture?.[Symbol.dispose]();
  }
}

/** At a terminal the demo begins with a picture. */
async function runAll(
  node: RunningNode,
  scenario: Scenario,
  invocation: Invocation,
  signal: AbortSignal,
  newSale: () => string,
): Promise<{ opening: DemoReport | undefined; report: DemoReport }> {
  const hasOpening = !invocation.json && canShowOpening();
  const run = (one: Scenario, stage: Stage) => runScenario(node, one, invocation, signal, newSale, stage);
  const opening = hasOpening ? await showOpening(node, scenario.seed, run) : undefined;
  return { opening, report: await run(scenario, rush(scenario)) };
}

/** How a run of the crowd is shown, and how fast it comes. */
interface Stage {
  readonly withinMs?: number;
  show(sale: SaleStatus): Promise<Shown>;
}

interface Shown {
  update(progress: CrowdProgress): void;
  stop(): Promise<void> | void;
}

async function runScenario(
  node: RunningNode,
  scenario: Scenario,
  { config }: Invocation,
  signal: AbortSignal,
  newSale: () => string,
  { withinMs, show }: Stage,
): Promise<DemoReport> {
  const { stock, segments, requests, buyers, concurrency, seed } = scenario;
  signal.throwIfAborted();
  const id = newSale();
  const sale = await node.sales.create({ id, title: 'Demo', stock, segments, perBuyerLimit: 1 }, 'demo');
  note(
    `Sale ${id}: ${plural(stock, 'unit')}, one per buyer. ${plural(requests, 'request')} from ` +
      `${plural(concurrency, 'client')} for ${plural(buyers, 'buyer')} (seed ${seed}) …`,
  );
  const shown = await show(sale);
  const orders = { url: node.publicUrl, saleId: id, scenario, ...(withinMs !== undefined && { withinMs }) };
  const crowd = await sendCrowd(orders, signal, shown.update).finally(shown.stop);
  note('Waiting until every order is in Postgres …');
  const report = await settle(node.sales, id, crowd.orders, signal);
  return demoReport(scenario, judge(stock, requests, crowd, report), report, node, config);
}

/** The demo itself: everybody at once. */
const rush = ({ requests }: Scenario): Stage => ({
  async show() {
    const bar = progressBar(requests, 'requests');
    return { update: (progress) => bar.update(progress.requests), stop: bar.stop };
  },
});

/** @returns what was sold in front of the user's eyes */
async function showOpening(
  node: RunningNode,
  seed: number,
  run: (scenario: Scenario, stage: Stage) => Promise<DemoReport>,
): Promise<DemoReport> {
  note(`First a picture: for ${OPENING_MS / 1_000} s, more and more buyers come.`);
  const stage: Stage = { withinMs: OPENING_MS, show: (sale) => drawOpening(node, sale) };
  const report = await run({ ...OPENING, seed }, stage);
  note(`${report.holds ? verdictText(report) : demoText(report)}\n\nNow all at once.`);
  return report;
}

/** The work's result. @throws the node's error if the node fails first */
async function orFailed<T>(node: RunningNode, work: Promise<T>): Promise<T> {
  const failure = node.failed.then((error: Error): never => {
    throw error;
  });
  return Promise.race([work, failure]);
}

async function keepRunning(
  node: RunningNode,
  report: DemoReport,
  { config, json }: Invocation,
  interruption: Interruption,
  exitCode: ExitCode,
): Promise<ExitCode> {
  (json ? note : print)(curlSession(node, report.saleId, config));
  note(`The node runs until Ctrl-C; its data stays in ${config.dataDir}.`);
  return await untilAsked(node, interruption, exitCode);
}

/** @returns the exit code; that of a failure if the node fails first */
async function untilAsked(node: RunningNode, { asked }: Interruption, exitCode: ExitCode): Promise<ExitCode> {
  const end = await Promise.race([asked, node.failed]);
  if (!(end instanceof Error)) return exitCode;
  note(`error: the node has failed: ${describe(end)}`);
  return EXIT_FAILED;
}
