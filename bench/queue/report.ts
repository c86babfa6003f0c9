import { columns } from '../../src/cli/terminal/output.ts';
import { barText, count, decimals } from '../support/figures.ts';
import { type Machine, machineText } from '../support/machine.ts';
import { parametersText } from '../support/options.ts';
import type { BenchResult } from '../support/run.ts';
import { idleText } from './idle.ts';
import type { ManyQueues } from './many-queues.ts';
import { OPTIONS, type QueueParameters } from './options.ts';
import type { Returns } from './returns.ts';
import type { Measured } from './run-all.ts';
import type { Rush } from './rush.ts';
import type { Streams } from './streams.ts';
import type { Polls, Waiting } from './waiting.ts';

/** The promised limits: of the ratio to the echo, of the crowd's rate beside streams, and of the time that a unit lies free. */
const PLACES_BAR = 0.5;
const STREAMS_BAR = 0.85;
const FREE_BAR_MS = 1_000;

export function report(
  { giving, returns, streams, rush, many, waiting }: Measured,
  parameters: QueueParameters,
  machine: Machine,
): BenchResult {
  const text = [
    machineText(machine),
    parametersText(OPTIONS, parameters),
    '',
    `Places given: ${count(giving.placesPerSecond)}/s, ratio ${giving.ratio.toFixed(2)} (bar ${barText(giving.ratio, PLACES_BAR)}), cpu ratio ${decimals(giving.cpuRatio, 2) ?? '-'}; the echo ${count(giving.echoPerSecond)}/s.`,
    `  p50 ${giving.p50Ms} ms, p99 ${giving.p99Ms} ms; µs each: Node ${giving.nodeCpuMicros}, Postgres ${giving.postgresCpuMicros}, Redis ${giving.redisCpuMicros}, wrk ${giving.wrkCpuMicros}`,
    '',
    ...returnsText(returns),
    '',
    ...streamsText(streams),
    '',
    ...waitingText(waiting),
    '',
    ...manyText(many),
    '',
    ...rushText(rush, parameters),
    '',
    'verify found every sale in order.',
  ];
  const { placesPerSecond, ratio, cpuRatio } = giving;
  return {
    text: text.join('\n'),
    json: {
      ...{ placesPerSecond, ratio, cpuRatio, bytesPerPlace: waiting.bytesPerPlace },
      freeUnitMaxMs: returns.units.maxMs,
      overtaken: returns.overtaken,
      offerToCommitP99Ms: { freeToOffer: returns.units.p99Ms, accept: returns.acceptP99Ms },
      streams,
      ...{ giving, returns, waiting, many, rush, parameters, machine },
    },
  };
}

function returnsText({ units, acceptP50Ms, acceptP99Ms, overtaken }: Returns): string[] {
  const { freed, p50Ms, p99Ms, maxMs } = units;
  const isMet = maxMs !== undefined && maxMs <= FREE_BAR_MS;
  return [
    `${count(freed)} units came back at random times, and were offered after ${p50Ms} ms (p99 ${p99Ms}, at most ${maxMs}; bar ≤ ${count(FREE_BAR_MS)} ms ${isMet ? 'met' : 'not met'}).`,
    `  An acceptance is answered after ${acceptP50Ms} ms, p99 ${acceptP99Ms} ms. ${count(overtaken)} places were overtaken.`,
  ];
}

function streamsText(streams: Streams): string[] {
  const { listeners, toldPerSecond, ratio, alonePerSecond, besidePerSecond, crowdP99Ms, nodeCpuMicros } =
    streams;
  return [
    `${count(listeners)} people listen to their places, and are told something new ${toldPerSecond} times a second.`,
    `  A crowd beside them buys ${count(besidePerSecond)}/s, alone ${count(alonePerSecond)}/s: ratio ${ratio.toFixed(2)} (bar ${barText(ratio, STREAMS_BAR)}), p99 ${crowdP99Ms} ms; Node ${nodeCpuMicros ?? '-'} µs for each event.`,
  ];
}

function waitingText({ places, givenPerSecond, bytesPerPlace, headRound, idle, ...rest }: Waiting): string[] {
  const { polls, returned, absentPassedPerSecond } = rest;
  return [
    `${count(places)} places wait: ${bytesPerPlace.postgres} bytes each in Postgres, ${bytesPerPlace.redis} in Redis.`,
    `  In batches, one after the other: ${count(givenPerSecond.first)}/s for the first tenth, ${count(givenPerSecond.last)}/s for the last.`,
    `  A round of the head takes ${headRound.p50Ms} ms, at most ${headRound.maxMs} ms.`,
    ...(idle ? [`  While nobody asks: ${idleText(idle)}.`] : []),
    pollText('with a token', polls.withToken),
    pollText('without', polls.withoutToken),
    `  A unit that comes back is offered after ${returned.p50Ms} ms, at most ${returned.maxMs} ms; the head passes ${count(absentPassedPerSecond)} absent places/s.`,
  ];
}

function manyText({ sales, empty, waiting, asked, returned }: ManyQueues): string[] {
  const isMet = returned.maxMs <= FREE_BAR_MS ? 'met' : 'not met';
  return [
    `${count(sales)} sales have a queue each.`,
    ...(empty ? [`  While all are empty: ${idleText(empty)}.`] : []),
    ...(waiting ? [`  While people wait in each: ${idleText(waiting)}.`] : []),
    ...(asked ? [`  While they ask, without the requests: ${idleText(asked)}.`] : []),
    `  A unit that comes back in one of them is offered after ${returned.p50Ms} ms, at most ${returned.maxMs} ms (bar ≤ ${count(FREE_BAR_MS)} ms ${isMet}).`,
  ];
}

function pollText(title: string, polls: Polls): string {
  const { perSecond, ratio, cpuRatio, p99Ms, nodeCpuMicros, postgresCpuMicros } = polls;
  return `  Polls ${title}: ${count(perSecond)}/s, ratio ${ratio.toFixed(2)}, cpu ratio ${decimals(cpuRatio, 2) ?? '-'}, p99 ${p99Ms} ms; µs each: Node ${nodeCpuMicros}, Postgres ${postgresCpuMicros}`;
}

function rushText(rush: readonly Rush[], { people, units, minutes, minuteMs }: QueueParameters): string[] {
  const row = (each: Rush) => [
    `${each.hasQueue ? 'queue' : 'no queue'}, ${each.giveUp ? 'people give up' : 'all stay'}`,
    count(each.requests),
    decimals(each.cpuSeconds, 1),
    count(each.sold),
    count(each.units.freed),
    count(each.units.left),
    each.units.p50Ms === undefined ? undefined : count(each.units.p50Ms),
    each.units.maxMs === undefined ? undefined : count(each.units.maxMs),
    count(each.overtaken),
    each.inVain.meanMinutes.toFixed(1),
    each.inVain.untilToldMinutes.toFixed(1),
  ];
  return [
    `${count(people)} people for ${count(units)} units, 30 % do not pay, ${minutes} minutes; a minute takes ${minuteMs / 1_000} s:`,
    columns(rush.map(row), {
      head: [
        ...['', 'requests', 'cpu s', 'sold', 'came back', 'left over', 'free p50 ms', 'max ms'],
        ...['overtaken', 'in vain, min', 'until told, min'],
      ],
      align: ['left', ...Array<'right'>(10).fill('right')],
    }),
  ];
}
