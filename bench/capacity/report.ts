/** The plan in plain English. */
import { columns } from '../../src/cli/terminal/output.ts';
import { count } from '../support/figures.ts';
import type { BenchResult } from '../support/run.ts';
import type { Costs, Measured } from './costs.ts';
import type { Demand } from './options.ts';
import { type Limit, type Plan, planFor } from './plan.ts';

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

export function report(demand: Demand, costs: Costs, measured: Measured): BenchResult {
  const plan = planFor(demand, costs, measured);
  if (!plan) {
    const text =
      'No number of workers and primaries is enough. With fewer --segments or --sales, batches are larger.';
    return { json: { demand, plan: null }, text };
  }
  const text = [
    `${count(demand.requests)} requests/s: ${count(refusedOf(demand))} refused, ${count(demand.orders)} committed, ` +
      `${count(demand.later)} committed later; ${count(demand.buyers)} buyers with an order`,
    `Costs of ${measured.machine}, ${measured.date}`,
    '',
    needs(demand, plan, measured),
    '',
    ...batchLines(demand, plan, costs),
    '',
    ...limitLines(plan),
  ];
  return { json: { demand, plan, costs }, text: text.join('\n') };
}

function refusedOf({ requests, orders, later }: Demand): number {
  return requests - orders - later;
}

function needs(demand: Demand, plan: Plan, { figures }: Measured): string {
  const { cores, bytes, batches, workers, nodes, primaries } = plan;
  const { redis, postgres } = plan.micros;
  const rows = [
    [
      'nodes',
      `${count(nodes)}, with ${count(workers)} workers`,
      `${cores.node.toFixed(1)} cores of Node; at most ${demand.usePercent} % of each in use`,
    ],
    ['Redis primaries', count(primaries), `${cores.redis.toFixed(1)} cores; ${redis.toFixed(1)} µs an order`],
    [
      'Postgres',
      `${cores.postgres.toFixed(1)} cores`,
      `${count(demand.orders)} rows/s in ${count(demand.orders / batches.transaction)} transactions/s; ${postgres.toFixed(1)} µs an order`,
    ],
    ['WAL of Postgres', `${size(bytes.wal)}/s`, `${count(figures.walBytes.value)} bytes an order`],
    [
      'disk of Postgres',
      size(bytes.disk),
      `${size(figures.rowBytes.value * 1e6)} per million orders, with indexes`,
    ],
    [
      'memory of Redis',
      size(bytes.redisMemory),
      `${count(figures.buyerBytes.value)} bytes a buyer; and ${size(bytes.redisOutage)} of logs for each minute without Postgres`,
    ],
    [
      'memory of the nodes',
      size(bytes.nodeMemory),
      `${size(figures.workerBytes.value)} a worker, ${size(figures.connectionBytes.value)} a connection, ${size(figures.saleBytes.value)} a worker and sale of 8 segments`,
    ],
    [
      'network of the nodes',
      `${bits(bytes.fromBuyers)} in, ${bits(bytes.toBuyers)} out`,
      `${figures.requestBytes.value} bytes a request, ${figures.refusalBytes.value} a refusal, ${figures.answerBytes.value} an order's answer; without TLS and TCP`,
    ],
    [
      'network of Redis',
      bits(bytes.redis),
      `${figures.redisOrderBytes.value} bytes an order, ${figures.redisCallBytes.value} a call`,
    ],
  ];
  return columns(rows, { head: ['needed', 'how much', 'of what'] });
}

function batchLines({ orders, later }: Demand, { batches, micros }: Plan, costs: Costs): string[] {
  if (orders + later === 0) return ['No orders: only refusals, which need no store.'];
  const lines = [
    `A take has ${batches.take.toFixed(1)} orders: ${batches.takeMs.toFixed(2)} ms pass until a lane sends its next one.`,
  ];
  if (orders > 0) {
    lines.push(
      `A transaction has ${count(batches.transaction)} orders, from ${batches.logs.toFixed(1)} logs.`,
    );
  }
  lines.push(
    `An order costs Node ${micros.node.toFixed(1)} µs, and a refusal ${costs.node.refusal.toFixed(1)} µs.`,
  );
  return lines;
}

function limitLines({ limits }: Plan): string[] {
  const [first, ...others] = limits as [Limit, ...Limit[]];
  const state = first.times < 1 ? 'This demand breaks' : 'What breaks first';
  const rest = others.map(({ what, times }) => `${what} (${timesText(times)})`).join(', ');
  return [
    `${state}: ${first.what}, at ${timesText(first.times)} this demand.`,
    `${first.remedy}.`,
    `Then: ${rest}.`,
  ];
}

function timesText(times: number): string {
  return `${times < 10 ? times.toFixed(2) : count(times)} times`;
}

function bits(bytes: number): string {
  return `${((bytes * 8) / 1e9).toFixed(2)} Gbit/s`;
}

/** In units of a thousand. */
export function size(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1_000 ** power;
  return `${value < 10 && power > 0 ? value.toFixed(1) : Math.round(value)} ${UNITS[power]}`;
}
