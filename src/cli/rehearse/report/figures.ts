/** The figures of each second, and of the whole rush, from what the crowd and the watch have kept. */
import { type CrowdResult, type CrowdSecond, NO_ANSWER } from '../crowd/protocol.ts';
import type { Look, NodeReading } from '../stage/watch.ts';

/** One second of the rush. Rates are requests that were due in it; latencies are theirs, whenever they were answered. */
export interface Second {
  readonly second: number;
  readonly due: number;
  readonly sold: number;
  readonly refused: number;
  /** Requests that never got a definite answer. */
  readonly open: number;
  /** Answers after which a buyer had to ask again, among them broken connections. */
  readonly repeated: number;
  readonly limited: number;
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
  readonly maxMs: number | undefined;
  /** How late the crowd itself was. */
  readonly lateMs: number;
  readonly unitsLeft: number | undefined;
  readonly lagOrders: number | undefined;
  readonly loopP99Ms: number | undefined;
  /** Cores in use, of all nodes that were watched. */
  readonly nodeCores: number | undefined;
  readonly redisCores: number | undefined;
  readonly replicaBehindBytes: number | undefined;
  readonly replicaSilentSeconds: number | undefined;
}

export const SOLD: readonly string[] = ['committed', 'accepted'];
/** Admission refused the request. */
export const LIMITED: readonly string[] = [
  'rate_limited',
  'challenge_required',
  'challenge_failed',
  'token_required',
];

/** @param sorted rising @param share 0 to 1 @returns the least value that so large a share does not exceed */
export function percentile(sorted: ArrayLike<number>, share: number): number | undefined {
  return sorted.length === 0 ? undefined : sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

const of = (counts: Readonly<Record<string, number>>, codes: readonly string[]) =>
  codes.reduce((sum, code) => sum + (counts[code] ?? 0), 0);
const total = (counts: Readonly<Record<string, number>>) =>
  Object.values(counts).reduce((sum, times) => sum + times, 0);
const most = (values: readonly number[]) => (values.length === 0 ? undefined : Math.max(...values));

export function secondsOf(crowd: Pick<CrowdResult, 'seconds'>, looks: readonly Look[]): Second[] {
  return crowd.seconds.map((second, at) => ({ ...ofCrowd(second, at), ...ofLooks(looks, at) }));
}

function ofCrowd({ due, ended, repeated, latencies, lateMs }: CrowdSecond, at: number) {
  const sorted = Float64Array.from(latencies).sort();
  const [sold, open, limited] = [of(ended, SOLD), of(ended, [NO_ANSWER]), of(ended, LIMITED)];
  return {
    ...{ second: at, due, sold, open, limited, lateMs },
    refused: total(ended) - sold - open - limited,
    repeated: total(repeated),
    p50Ms: percentile(sorted, 0.5),
    p99Ms: percentile(sorted, 0.99),
    maxMs: percentile(sorted, 1),
  };
}

function ofLooks(looks: readonly Look[], at: number) {
  const before = looks.findLast((look) => look.at < at + 0.5);
  const after = looks.find((look) => look.at >= at + 0.5);
  const replicas = after?.redis.flatMap((one) => one.replicas) ?? [];
  const nodes = after?.nodes ?? [];
  return {
    unitsLeft: after?.unitsLeft,
    lagOrders: nodes.length === 0 ? undefined : nodes.reduce((sum, node) => sum + node.lagOrders, 0),
    loopP99Ms: most(nodes.map((node) => node.loopP99Ms)),
    nodeCores: before && after && coresOf(before, after),
    redisCores: before && after && redisCores(before, after),
    replicaBehindBytes: most(replicas.map((replica) => replica.behindBytes)),
    replicaSilentSeconds: most(replicas.map((replica) => replica.silentSeconds)),
  };
}

/** Of the nodes that answered both times. */
function coresOf(before: Look, after: Look): number | undefined {
  const cpuSeconds = rise(before, after, ({ cpuSeconds }) => cpuSeconds);
  return cpuSeconds === undefined ? undefined : cpuSeconds / (after.at - before.at);
}

/** By how much a counter has risen in the nodes that answered both times. */
function rise(before: Look, after: Look, counter: (node: NodeReading) => number): number | undefined {
  const risen = after.nodes.flatMap((node) => {
    const earlier = before.nodes.find((one) => one.node === node.node);
    return earlier === undefined ? [] : [counter(node) - counter(earlier)];
  });
  return risen.length === 0 ? undefined : risen.reduce((sum, one) => sum + one, 0);
}

function redisCores(before: Look, after: Look): number | undefined {
  if (before.redis.length === 0 || before.redis.length !== after.redis.length) return undefined;
  const spent = after.redis.reduce((sum, one, i) => sum + one.cpuSeconds - before.redis[i]!.cpuSeconds, 0);
  return spent / (after.at - before.at);
}

/** The whole rush. */
export interface Totals {
  readonly requests: number;
  readonly ended: Readonly<Record<string, number>>;
  readonly repeated: Readonly<Record<string, number>>;
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
  readonly maxMs: number | undefined;
  /**
   * Processor time from the first look to the last, for each request, in microseconds; `undefined`: not seen. That of nodes is for
   * the requests that the watched ones have answered.
   */
  readonly nodeMicros: number | undefined;
  readonly redisMicros: number | undefined;
}

export function totalsOf(crowd: Pick<CrowdResult, 'seconds'>, looks: readonly Look[]): Totals {
  const sum = (pick: (second: CrowdSecond) => Record<string, number>) => {
    const counts: Record<string, number> = {};
    for (const second of crowd.seconds)
      for (const [code, times] of Object.entries(pick(second))) counts[code] = (counts[code] ?? 0) + times;
    return counts;
  };
  const all = crowd.seconds.reduce((count, { latencies }) => count + latencies.length, 0);
  const sorted = new Float64Array(all);
  let at = 0;
  for (const { latencies } of crowd.seconds) for (const latency of latencies) sorted[at++] = latency;
  sorted.sort();
  const requests = crowd.seconds.reduce((count, { due }) => count + due, 0);
  const [first, last] = [looks[0], looks.at(-1)];
  const spent = (cores: typeof coresOf, share = 1) => {
    const used = first && last && first !== last ? cores(first, last) : undefined;
    return used === undefined || requests * share === 0
      ? undefined
      : (used * (last!.at - first!.at) * 1e6) / (requests * share);
  };
  const repeated = sum(({ repeated }) => repeated);
  const answers = requests + total(repeated) - (repeated.broken ?? 0);
  // A node that was killed or is not watched has answered the others: its processor time is not in the sum.
  const seen = first && last ? (rise(first, last, ({ purchases }) => purchases) ?? 0) : 0;
  return {
    ...{ requests, ended: sum(({ ended }) => ended), repeated },
    ...{ p50Ms: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99), maxMs: percentile(sorted, 1) },
    ...{ nodeMicros: spent(coresOf, Math.min(1, seen / answers)), redisMicros: spent(redisCores) },
  };
}
