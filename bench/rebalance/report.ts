import { columns } from '../../src/cli/terminal/output.ts';
import { count } from '../support/figures.ts';
import { type Machine, machineText } from '../support/machine.ts';
import { medianOf } from '../support/median.ts';
import { parametersText } from '../support/options.ts';
import type { BenchResult } from '../support/run.ts';
import { OPTIONS, type RebalanceParameters } from './options.ts';
import type { Round, WayResult } from './rounds.ts';

const HEAD = ['stock in', 'timer', 'orders/s', 'refills/1,000', 'moves', 'p50 ms', 'p99 ms', 'p99.9 ms'];

export function report(
  results: readonly WayResult[],
  parameters: RebalanceParameters,
  machine: Machine,
): BenchResult {
  const ways = results.map(({ way, rounds }) => ({ ...way, ...medians(rounds) }));
  const rows = ways.map(({ place, timer, ordersPerSecond, refills, moves, p50, p99, p999 }) => [
    place,
    timer ? 'on' : 'off',
    count(ordersPerSecond),
    refills.toFixed(2),
    count(moves),
    p50.toFixed(2),
    p99.toFixed(2),
    p999.toFixed(2),
  ]);
  const text = [
    machineText(machine),
    parametersText(OPTIONS, parameters),
    '',
    columns(rows, {
      head: HEAD,
      align: HEAD.map((name) => (name === 'stock in' || name === 'timer' ? 'left' : 'right')),
    }),
    '',
    'Every unit was sold, every order was committed, and verify found the sale of each round in order.',
  ];
  return { text: text.join('\n'), json: { ways, parameters, machine } };
}

function medians(rounds: readonly Round[]): Round {
  const middle = (figure: (round: Round) => number, digits: number) => medianOf(rounds, figure, digits)!;
  return {
    ordersPerSecond: middle((round) => round.ordersPerSecond, 0),
    refills: middle((round) => round.refills, 3),
    moves: middle((round) => round.moves, 0),
    p50: middle((round) => round.p50, 3),
    p99: middle((round) => round.p99, 3),
    p999: middle((round) => round.p999, 3),
  };
}
