/** Measures one row in two sales. */
import type { Outcome, SaleSpec, SellingRow, SoldOrder, Strategy } from '../../catalogue/parts/contract.ts';
import { note } from '../../src/cli/terminal/output.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { BenchFailure } from '../support/failure.ts';
import { closedLoop, type LoopResult, total } from './closed-loop.ts';
import type { Crowd, RowFigures, Selling } from './figures.ts';
import type { CatalogueParameters } from './options.ts';
import type { Stall } from './store-house.ts';

/** More stock than any row sells in the longest time that the options allow. */
const ENDLESS_STOCK = 100_000_000;
/** The first buyer's id, in the style of ids in shops. */
const FIRST_BUYER = 100_003;
const THROWN = 'thrown';

type Phase = { readonly result: LoopResult; readonly orders: number };

export async function measureRow(
  row: SellingRow,
  stall: Stall,
  parameters: CatalogueParameters,
): Promise<RowFigures> {
  const { id, title, stock, limit } = row;
  const undersells = row.undersells !== '';
  const selling = await sellOn(row, stall, parameters);
  return { id, title, stock, limit, undersells, selling, crowd: await sellOut(row, stall, parameters) };
}

/** The first of the two sales; it also warms up the code for the second. */
async function sellOn(row: SellingRow, stall: Stall, parameters: CatalogueParameters): Promise<Selling> {
  const sale = { ...specOf(parameters), id: 'endless', stock: ENDLESS_STOCK };
  return withNodes(row, stall, sale, async (nodes) => {
    let buyers = 0;
    const callsSince = await stall.calls.start(stall.stores.postgres);
    const { result, orders } = await crowd(row, nodes, parameters, () => `buyer-${++buyers}`);
    const calls = await callsSince();
    return {
      ordersPerSecond: (result.answers.sold ?? 0) / result.seconds,
      p50Ms: result.p50Ms,
      p99Ms: result.p99Ms,
      failedPercent: failedPercent(result),
      redisCommandsPerOrder: calls.redis / Math.max(orders, 1),
      postgresStatementsPerOrder: calls.postgres / Math.max(orders, 1),
    };
  });
}

async function sellOut(row: SellingRow, stall: Stall, parameters: CatalogueParameters): Promise<Crowd> {
  const sale = { ...specOf(parameters), id: 'crowd', stock: parameters.stock };
  return withNodes(row, stall, sale, async (nodes) => {
    const buyer = () => String(FIRST_BUYER + Math.floor(Math.random() * parameters.buyers));
    const { result, orders } = await crowd(row, nodes, { ...parameters, warmUpMs: 0 }, buyer);
    const sold = await nodes[0]!.sold();
    assertTold(row, sold, orders, result);
    const oversold = Math.max(0, sold.length - sale.stock);
    if (oversold > 0 && row.stock === 'safe')
      throw new BenchFailure(
        `${row.id} is declared safe, but has sold ${sold.length} of ${sale.stock} units`,
      );
    return {
      requestsPerSecond: total(result.answers) / result.seconds,
      p50Ms: result.p50Ms,
      p99Ms: result.p99Ms,
      failedPercent: failedPercent(result),
      sold: sold.length,
      oversold,
      undersold: result.allAnswers.sold_out ? Math.max(0, sale.stock - sold.length) : null,
      buyersAboveLimit: buyersWithSeveral(sold),
    };
  });
}

async function withNodes<T>(
  row: SellingRow,
  { stores }: Stall,
  sale: SaleSpec,
  work: (nodes: readonly Strategy[]) => Promise<T>,
): Promise<T> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    const nodes: Strategy[] = [];
    while (nodes.length < sale.nodes) {
      const node = await row.open(stores, sale);
      teardown.add(() => node.close());
      nodes.push(node);
    }
    return await work(nodes);
  } finally {
    await teardown.release();
  }
}

let ordersNamed = 0;

async function crowd(
  row: SellingRow,
  nodes: readonly Strategy[],
  load: CatalogueParameters,
  nextBuyer: () => string,
): Promise<Phase> {
  let firstError: unknown;
  const result = await closedLoop(load, (client) =>
    nodes[client % nodes.length]!.sell(nextBuyer(), `order-${++ordersNamed}`).then(
      ({ code }: Outcome) => code,
      (error: unknown) => {
        firstError ??= error;
        return THROWN;
      },
    ),
  );
  const thrown = result.allAnswers[THROWN];
  if (thrown) note(`${row.id}: ${thrown} requests ended with an error, the first one with ${firstError}`);
  return { result, orders: result.allAnswers.sold ?? 0 };
}

/**
 * @throws BenchFailure if the answers name other orders than the store has. A request that threw may have left an
 * order
 */
function assertTold({ id }: SellingRow, sold: readonly SoldOrder[], told: number, result: LoopResult): void {
  const open = result.allAnswers[THROWN] ?? 0;
  if (sold.length >= told && sold.length <= told + open) return;
  throw new BenchFailure(`${id} answered ${told} orders, but its store holds ${sold.length}`);
}

function specOf({ segments, nodes }: CatalogueParameters): Pick<SaleSpec, 'segments' | 'nodes'> {
  return { segments, nodes };
}

function failedPercent({ answers }: LoopResult): number {
  const failed = (answers.failed ?? 0) + (answers[THROWN] ?? 0);
  return (failed / Math.max(total(answers), 1)) * 100;
}

function buyersWithSeveral(orders: readonly SoldOrder[]): number {
  const counts = new Map<string, number>();
  for (const { buyerId } of orders) counts.set(buyerId, (counts.get(buyerId) ?? 0) + 1);
  return [...counts.values()].filter((count) => count > 1).length;
}
