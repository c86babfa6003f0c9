import { Command, Option } from 'commander';
import { type NumberOptions, type Parameters, wholeNumber } from '../support/options.ts';

export const OPTIONS = {
  requests: {
    flags: '--requests <n>',
    description: 'purchases that are asked for in a second, refused ones too',
    least: 1,
    most: 1_000_000_000,
    fallback: 1_000_000,
  },
  orders: {
    flags: '--orders <n>',
    description: 'of these, the orders in a second that Postgres commits at once',
    least: 0,
    most: 1_000_000_000,
    fallback: 200_000,
  },
  later: {
    flags: '--later <n>',
    description: 'of these, the orders in a second that are answered 202, and committed after the rush',
    least: 0,
    most: 1_000_000_000,
    fallback: 0,
  },
  buyers: {
    flags: '--buyers <n>',
    description: 'buyers with an order, in all sales together',
    least: 0,
    most: 10_000_000_000,
    fallback: 10_000_000,
  },
  sales: {
    flags: '--sales <n>',
    description: 'sales that the crowd is spread over evenly',
    least: 1,
    most: 65_536,
    fallback: 1,
  },
  segments: {
    flags: '--segments <n>',
    description: 'segments of each sale',
    least: 1,
    most: 1_024,
    fallback: 64,
  },
  connections: {
    flags: '--connections <n>',
    description: 'connections that buyers, or the gateways before the nodes, keep open',
    least: 1,
    most: 1_000_000_000,
    fallback: 100_000,
  },
  workers: {
    flags: '--workers <n>',
    description: 'workers of a node',
    least: 1,
    most: 64,
    fallback: 4,
  },
  roundTripMicros: {
    flags: '--round-trip-us <n>',
    description: 'microseconds from a node to a store and back, without the work',
    least: 1,
    most: 1_000_000,
    fallback: 200,
  },
  usePercent: {
    flags: '--use <n>',
    description: 'per cent of a core that may be in use; the rest is for peaks',
    least: 1,
    most: 99,
    fallback: 60,
  },
} as const satisfies NumberOptions;

export type Demand = Parameters<typeof OPTIONS>;

export interface CapacityInvocation {
  readonly demand: Demand;
  readonly json: boolean;
  /** Print predictions beside measurements instead of a plan. */
  readonly check: boolean;
}

export function readOptions(argv: readonly string[]): CapacityInvocation {
  const program = new Command('npm run capacity --').description(
    'What a sale of a given size needs, worked out from measured costs (docs/capacity.md). Nothing is measured now.',
  );
  for (const { flags, description, least, most, fallback } of Object.values(OPTIONS)) {
    program.addOption(
      new Option(flags, `${description} (default: ${fallback})`).argParser(wholeNumber(least, most)),
    );
  }
  program.option('--check', 'print what the model says of loads that were measured, instead of a plan');
  program.option('--json', 'print one JSON object on stdout and nothing else there');
  const given = program.parse(argv).opts<Record<string, number | boolean | undefined>>();
  const demand = Object.fromEntries(
    Object.entries(OPTIONS).map(([name, { flags, fallback }]) => [name, given[keyOf(flags)] ?? fallback]),
  ) as Demand;
  if (demand.orders + demand.later > demand.requests) {
    program.error(
      `error: --orders ${demand.orders} and --later ${demand.later} are more than --requests ${demand.requests}: ` +
        'each order is a request',
    );
  }
  return { demand, json: given.json === true, check: given.check === true };
}

/** The name under which commander keeps an option. */
function keyOf(flags: string): string {
  return new Option(flags).attributeName();
}
