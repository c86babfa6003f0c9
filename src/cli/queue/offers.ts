/** Commands that stop the offers of a queue, let them go on, set their pace, and hand some out. */
import { Option } from 'commander';
import { parseQueueChange } from '../../operations/queue/queue-operations.ts';
import { AUTHOR_OPTIONS, authorOf } from '../command/author.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { namingFlags, numberOrText } from '../command/flags.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK, UsageError } from '../terminal/explain.ts';
import { print, printJson } from '../terminal/output.ts';
import { queueSheet } from './queue-text.ts';

interface OfferSpec extends Pick<CommandSpec, 'name' | 'summary' | 'details' | 'options' | 'examples'> {
  /** Makes the JSON of the change, as the ops port accepts it. */
  readonly change: (options: Readonly<Record<string, unknown>>) => Record<string, unknown>;
}

function offerCommand({ change, options = [], ...spec }: OfferSpec): CommandSpec {
  return {
    ...spec,
    options: [...options, ...AUTHOR_OPTIONS],
    settings: SALE_SETTINGS,
    defaults: QUIET,
    async run({ config, log, json, args, options: given }) {
      const author = authorOf(given);
      const wanted = await namingFlags(
        'the change',
        { options },
        () => parseQueueChange(change(given)).change,
      );
      const queue = await withOperations({ config, log }, ({ queues }) =>
        queues.changeQueue(args[0]!, wanted, author),
      );
      if (json) printJson(queue);
      else print(queueSheet(queue));
      return EXIT_OK;
    },
  };
}

const pauseOffers = offerCommand({
  name: 'pause <sale>',
  summary: 'stop the offers of a queue: nobody new gets one, and all keep their places',
  details:
    'Offers that buyers have stay, and can be accepted. No further offer is begun; those that were begun before are still made. To stop ' +
    'all purchases, pause the sale instead: `stockade sale pause`.',
  examples: ['stockade queue pause tickets --reason "payments are slow"'],
  change: () => ({ action: 'pause' }),
});

const resumeOffers = offerCommand({
  name: 'resume <sale>',
  summary: 'let the offers of a queue go on',
  details: 'They go on at the pace that is set: see `stockade queue pace`.',
  examples: ['stockade queue resume tickets'],
  change: () => ({ action: 'resume' }),
});

const paceOffers = offerCommand({
  name: 'pace <sale>',
  summary: 'set how many offers a queue makes in a minute at most',
  options: [
    new Option('--per-minute <n>', 'offers in a minute at most, from 1'),
    new Option('--no-bound', 'as many as there are units').conflicts('perMinute'),
  ],
  examples: ['stockade queue pace tickets --per-minute 600', 'stockade queue pace tickets --no-bound'],
  change: ({ perMinute, bound }) => {
    if (perMinute === undefined && bound !== false)
      throw new UsageError('say how fast: give --per-minute or --no-bound');
    return { action: 'pace', perMinute: bound === false ? null : numberOrText(perMinute) };
  },
});

const handOutOffers = offerCommand({
  name: 'hand-out <sale>',
  summary: 'make a given number of offers, while the offers of a queue are stopped',
  details:
    'This number of offers goes to the next places as soon as units are free. Then the offers stop again. The number replaces what ' +
    'is left of an earlier one, and 0 takes that back.',
  options: [new Option('--offers <n>', 'how many (required)')],
  examples: ['stockade queue hand-out tickets --offers 100 --reason "a first group"'],
  change: ({ offers }) => ({ action: 'hand-out', offers: numberOrText(offers) }),
});

export const OFFER_COMMANDS: readonly CommandSpec[] = [pauseOffers, resumeOffers, paceOffers, handOutOffers];
