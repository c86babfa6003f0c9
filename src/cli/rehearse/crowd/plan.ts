/** What a rehearsal is asked for on the command line. */
import { Option } from 'commander';
import { z } from 'zod';
import { whole } from '../../../config/values/schemas.ts';
import { withoutSecrets } from '../../../config/values/secret.ts';
import { InvalidInput } from '../../../engine/errors.ts';
import { YES_OPTION } from '../../command/confirm.ts';
import { ARRIVALS, type Arrivals, type Crowding } from './arrivals.ts';
import { type FaultKind, leastSecondsFor } from './fault.ts';

export interface Plan extends Crowding {
  readonly stock: number;
  readonly segments: number;
  /** Different buyers: the requests go round among them. */
  readonly buyers: number;
  /** Nodes that the rehearsal starts; 0: it uses those of `urls`. */
  readonly nodes: number;
  readonly urls: readonly string[];
  /** The slowest answer that is good enough for 99 of 100 buyers, in milliseconds. */
  readonly goodMs: number;
  /** A file for the report as a page. */
  readonly report: string | undefined;
  readonly yes: boolean;
  /** Each hurts one node more, which is started for it. */
  readonly faults: readonly FaultKind[];
  /** Whether there may be faults while the shop sells on these stores. */
  readonly besideOpenSales: boolean;
}

const DEFAULTS = { stock: 1_000, segments: 8, buyers: 5_000, rate: 500, for: 10, good: 1_000, nodes: 1 };
const MAX_SECONDS = 3_600;
/** The crowd keeps every request until the end. */
const MAX_REQUESTS = 5_000_000;

const collect = (value: string, before: readonly string[] = []) => [...before, value];

export const planOptions = [
  new Option('--buyers <n>', `different buyers (default: ${DEFAULTS.buyers})`),
  new Option('--rate <n>', `requests a second at the highest (default: ${DEFAULTS.rate})`),
  new Option('--for <seconds>', `how long requests come (default: ${DEFAULTS.for})`),
  new Option(
    '--arrivals <shape>',
    'steady: the rate all the time. rush: for a fifth of the time, then it falls to a tenth. waves: the rate ' +
      'and a tenth of it in turn, five times (default: rush)',
  ).choices(ARRIVALS),
  new Option('--stock <n>', `units for sale, one per buyer (default: ${DEFAULTS.stock})`),
  new Option('--segments <n>', `parts of the stock (default: ${DEFAULTS.segments})`),
  new Option('--good <ms>', `99 of 100 answers must come within this time (default: ${DEFAULTS.good})`),
  new Option('--nodes <n>', `nodes that the rehearsal starts (default: ${DEFAULTS.nodes})`),
  new Option(
    '--url <url>',
    'a running node or gateway for the crowd, instead of own nodes; may be given several times',
  ).argParser(collect),
  new Option('--report <file>', 'write the report to this file, as a page for a browser'),
  new Option('--kill-node', 'start one node more, and kill it in mid-rush'),
  new Option('--cut-redis', 'start one node more, and cut it off from Redis for some seconds in mid-rush'),
  new Option('--beside-open-sales', 'make faults although sales of the shop are open on these stores'),
  new Option('--clean', 'only remove what killed rehearsals have left'),
  new Option(YES_OPTION.flags, 'load these stores, although they are not on this machine or sell'),
];

/** Without a user: a command line is no place for a password, and the report names the URL. */
const url = z
  .string()
  .regex(/^https?:\/\/[^/?#@\s]+\/?$/, 'must be like http://host:port, without a user and a path');

const schema = z.object({
  buyers: whole(1, MAX_REQUESTS).default(DEFAULTS.buyers),
  rate: whole(1, 1_000_000).default(DEFAULTS.rate),
  for: whole(1, MAX_SECONDS).default(DEFAULTS.for),
  arrivals: z.enum(ARRIVALS).default('rush'),
  stock: whole(1, 2_147_483_648).default(DEFAULTS.stock),
  segments: whole(1, 1_024).default(DEFAULTS.segments),
  good: whole(1, 600_000).default(DEFAULTS.good),
  nodes: whole(1, 16).optional(),
  url: z.array(url).default([]),
  report: z.string().min(1, 'must be the name of a file').optional(),
  yes: z.boolean().default(false),
  killNode: z.boolean().default(false),
  cutRedis: z.boolean().default(false),
  besideOpenSales: z.boolean().default(false),
});

/** @throws InvalidInput with all faults at once */
export function planFrom(options: Readonly<Record<string, unknown>>): Plan {
  const parsed = schema.safeParse(options);
  if (!parsed.success)
    throw invalid(parsed.error.issues.map(({ path, message }) => faultOf(options, path, message)));
  const { for: seconds, good: goodMs, url: urls, nodes, killNode, cutRedis, ...others } = parsed.data;
  const wanted = [killNode && 'kill-node', cutRedis && 'cut-redis'] as const;
  const kinds = wanted.filter((kind) => kind !== false);
  const faults = [
    ...(others.rate * seconds > MAX_REQUESTS
      ? [{ field: '--rate', problem: `times --for must be at most ${MAX_REQUESTS} requests` }]
      : []),
    ...kinds.flatMap((kind) => tooShortFor(kind, others.arrivals, seconds)),
    ...(urls.length > 0 && nodes !== undefined
      ? [{ field: '--nodes', problem: 'starts nodes, and --url uses those that run: choose one of them' }]
      : []),
  ];
  if (faults.length > 0) throw invalid(faults);
  return {
    ...others,
    ...{ seconds, goodMs, report: others.report, faults: kinds },
    urls: urls.map((text) => text.replace(/\/$/, '')),
    nodes: urls.length > 0 ? 0 : (nodes ?? DEFAULTS.nodes),
  };
}

function tooShortFor(kind: FaultKind, arrivals: Arrivals, seconds: number) {
  const least = leastSecondsFor(kind, arrivals);
  if (seconds >= least) return [];
  const needed = `must be at least ${least} with --${kind} and --arrivals ${arrivals}`;
  return [{ field: '--for', problem: `${needed}, so that the time after the fault is judged too` }];
}

function faultOf(
  options: Readonly<Record<string, unknown>>,
  [name, at]: readonly PropertyKey[],
  message: string,
) {
  const given = options[String(name)];
  const value = typeof at === 'number' && Array.isArray(given) ? given[at] : given;
  const mayHoldSecret = name === 'url' && /[@?#]/.test(String(value));
  const shown = mayHoldSecret ? withoutSecrets(String(value)) : value;
  return { field: `--${String(name)}`, problem: `is ${JSON.stringify(shown)}, but ${message}` };
}

const invalid = (faults: { field: string; problem: string }[]) =>
  new InvalidInput('the rehearsal is not valid', faults);
