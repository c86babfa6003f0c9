/** The flags of a sale's queue, for `sale create` and `sale queue`. They have the names of the JSON's fields. */
import { Option } from 'commander';
import { QUEUE_NAMES } from '../../engine/sale/queue-json.ts';
import { numberOrText } from '../command/flags.ts';

export const QUEUE_OPTIONS = [
  new Option('--queue <order>', 'off, fifo (first come, first served) or draw (shuffled at the start)'),
  new Option('--offer-seconds <n>', 'how long an offer can be accepted (default: 120)'),
  new Option(
    '--presence-seconds <n>',
    'a buyer not heard of for this time is absent; 0: never (default: 60)',
  ),
  new Option('--max-waiting <n>', 'places behind the head at most (default: 1000000)'),
  new Option(
    '--fit <policy>',
    'if too few units are free for the next place: wait for more, offer less, or pass it (default: less)',
  ),
];

/** The fields that the flags give. */
export function queueInput(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    QUEUE_NAMES.filter((name) => given[name] !== undefined).map((name) => [name, numberOrText(given[name])]),
  );
}
