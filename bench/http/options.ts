import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { settings } from '../../src/config/settings.ts';
import { type Parameters, parametersText, parseOptions, SEGMENTS, wholeNumber } from '../support/options.ts';

export const OPTIONS = {
  seconds: {
    flags: '--seconds <n>',
    description: 'how long each phase is measured',
    least: 1,
    most: 3_600,
    fallback: 3,
    tiny: 1,
  },
  warmupSeconds: {
    flags: '--warmup-seconds <n>',
    description: 'how long each phase runs before it is measured; 0: not at all',
    least: 0,
    most: 3_600,
    fallback: 1,
    tiny: 0,
  },
  workers: {
    flags: '--workers <n>',
    description:
      'threads of the node, and of the echo server; the default leaves a core to the stores and to wrk',
    least: 1,
    most: 64,
    fallback: Math.max(1, availableParallelism() - 1),
  },
  segments: SEGMENTS,
  eventsStreamMax: {
    flags: '--events-stream-max <n>',
    description: "the node's EVENTS_STREAM_MAX; 0: order events are not delivered",
    least: 0,
    most: 1_000_000_000,
    fallback: Number(settings.eventsStreamMax.fallback),
  },
  eventsYieldMs: {
    flags: '--events-yield-ms <n>',
    description: "the node's EVENTS_YIELD_MS; 0: order events are delivered at once, which delays buyers",
    least: 0,
    most: 600_000,
    fallback: Number(settings.eventsYieldMs.fallback),
  },
  rounds: {
    flags: '--rounds <n>',
    description: 'how often all phases are run; medians and quartiles are printed',
    least: 1,
    most: 100,
    fallback: 9,
    tiny: 1,
  },
} as const;

const DEFAULT_CONNECTIONS = [512];
const TINY_CONNECTIONS = [16];
const MOST_CONNECTIONS = 10_000;

export interface HttpParameters extends Parameters<typeof OPTIONS> {
  /** Ascending. The results for the last one are the headline, the others are the sweep. */
  readonly connections: readonly number[];
  readonly compare: Build | undefined;
  /** The segments of the sales of a second node with the same build; `undefined`: there is no such node. */
  readonly otherSegments: number | undefined;
  /** The node has no stores: stock in its memory, orders in PGlite. */
  readonly embedded: boolean;
  /** The share of purchases that a second node traces, 0 to 1; `undefined`: there is no such node. */
  readonly traces: number | undefined;
}

/** Whether there is a second node, which goes through the same phases. */
export function isCompared({ compare, otherSegments, traces }: HttpParameters): boolean {
  return compare !== undefined || otherSegments !== undefined || traces !== undefined;
}

/** A build of the product, and flags of `stockade serve` that only its node has. */
export interface Build {
  /** As it was given. */
  readonly label: string;
  /** Its `cli/main.js`. */
  readonly main: string;
  readonly flags: Readonly<Record<string, string>>;
}

export interface HttpInvocation {
  readonly parameters: HttpParameters;
  readonly json: boolean;
}

export function readOptions(argv: readonly string[]): HttpInvocation {
  const program = new Command('npm run bench:http --')
    .description(
      'Requests per second of a real node, beside a bare uWebSockets.js echo of the same request in the same run.',
    )
    .option(
      '--connections <list>',
      'connections that wrk keeps open, each with one request under way; with several numbers, as 64,128,256,512, ' +
        `everything is measured with each of them (default: ${DEFAULT_CONNECTIONS})`,
      connectionList,
    )
    .option(
      '--compare <dist>',
      'a second build, which goes through the same phases on the same stores in turns with this one; flags of its node ' +
        'follow after commas: dist,http-server=node is this build over node:http',
      readBuild,
    )
    .addOption(
      new Option(
        '--traces <share>',
        'a second node, which traces this share of its purchases, 0 to 1, and sends them to a collector; in turns with this one',
      )
        .argParser(readShare)
        .conflicts(['compare', 'otherSegments']),
    )
    .addOption(
      new Option(
        '--other-segments <n>',
        'a second node with the same build, whose sales have this many segments; in turns with this one',
      )
        .argParser(wholeNumber(SEGMENTS.least, SEGMENTS.most))
        .conflicts('compare'),
    )
    .addOption(
      new Option(
        '--embedded',
        'a node without Redis and Postgres, as `stockade serve` and the demo start it: all its work counts as Node',
      ).conflicts(['compare', 'otherSegments', 'traces']),
    );
  const { parameters, json } = parseOptions(program, OPTIONS, argv);
  const {
    tiny,
    connections,
    compare,
    otherSegments,
    traces,
    embedded = false,
  } = program.opts<{
    tiny?: boolean;
    connections?: number[];
    compare?: Build;
    otherSegments?: number;
    traces?: number;
    embedded?: boolean;
  }>();
  const fallback = tiny ? TINY_CONNECTIONS : DEFAULT_CONNECTIONS;
  const compared = { compare, otherSegments, traces, embedded };
  return { parameters: { ...parameters, connections: connections ?? fallback, ...compared }, json };
}

export function describeParameters(parameters: HttpParameters): string {
  const { connections, compare, otherSegments, traces, embedded } = parameters;
  const words = [`--connections ${connections}`, parametersText(OPTIONS, parameters)];
  if (compare) words.push(`--compare ${compare.label}`);
  if (otherSegments !== undefined) words.push(`--other-segments ${otherSegments}`);
  if (traces !== undefined) words.push(`--traces ${traces}`);
  if (embedded) words.push('--embedded');
  return words.join(' ');
}

function connectionList(text: string): number[] {
  const numbers = text.split(',').map((part) => (/^\d+$/.test(part) ? Number(part) : Number.NaN));
  if (numbers.every((n) => n >= 1 && n <= MOST_CONNECTIONS)) {
    return [...new Set(numbers)].sort((a, b) => a - b);
  }
  throw new InvalidArgumentError(
    `It must be whole numbers from 1 to ${MOST_CONNECTIONS}, with commas between.`,
  );
}

function readShare(text: string): number {
  const share = settings.otelTracesSamplerArg.schema.safeParse(text);
  if (share.success) return share.data;
  throw new InvalidArgumentError('It must be a number from 0 to 1.');
}

/** Fails for a missing build before any server is started. */
function readBuild(text: string): Build {
  const [dist, ...settings] = text.split(',') as [string, ...string[]];
  const main = resolve(dist, 'cli/main.js');
  if (!existsSync(main)) throw new InvalidArgumentError(`There is no ${main}.`);
  const flags = settings.map((setting) => setting.split('='));
  if (flags.some((flag) => flag.length !== 2 || flag.includes(''))) {
    throw new InvalidArgumentError('After the folder, flags must be given as name=value.');
  }
  return { label: text, main, flags: Object.fromEntries(flags) };
}
