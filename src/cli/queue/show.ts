import { Option } from 'commander';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK } from '../terminal/explain.ts';
import { print, printJson } from '../terminal/output.ts';
import { queueSheet } from './queue-text.ts';

export const showQueue: CommandSpec = {
  name: 'show <sale>',
  summary: 'show the queue of a sale: how many wait, whether offers are made, how fast',
  details:
    'The places of a long queue are not counted at each look, because that reads all of them. Without --count it then says how ' +
    'many wait at most.',
  options: [new Option('--count', 'count the places by state, however many there are')],
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: ['stockade queue show tickets', 'stockade queue show tickets --count --json'],
  async run({ config, log, json, args, options }) {
    const queue = await withOperations({ config, log }, ({ queues }) =>
      queues.showQueue(args[0]!, { count: options.count === true }),
    );
    if (json) printJson(queue);
    else print(queueSheet(queue));
    return EXIT_OK;
  },
};
