import { Option } from 'commander';
import {
  DEFAULT_PAGE_PLACES,
  MAX_PAGE_PLACES,
  PLACE_STATES,
  parsePlaceQuery,
} from '../../operations/queue/queue-operations.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { namingFlags } from '../command/flags.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK } from '../terminal/explain.ts';
import { note, print, printJson } from '../terminal/output.ts';
import { printTable } from '../terminal/table.ts';
import { placeColumns } from './queue-text.ts';

export const listPlaces: CommandSpec = {
  name: 'places <sale>',
  summary: 'list the places of a queue, page by page, or those of one buyer',
  details:
    'Pages are in the order of the numbers, which is the order in which places were given. With --buyer it lists the places of ' +
    'that buyer, the newest first. For a place that waits, it also says how many waiting places are served before it.',
  options: [
    new Option('--buyer <id>', 'the places of this buyer'),
    new Option('--state <state>', `only places that are ${PLACE_STATES.join(', ')}`),
    new Option(
      '--limit <n>',
      `places in a page, from 1 to ${MAX_PAGE_PLACES} (default: ${DEFAULT_PAGE_PLACES}; with --buyer ${MAX_PAGE_PLACES})`,
    ),
    new Option('--after <number>', 'begin after this place: `next` of the page before'),
  ],
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: [
    'stockade queue places tickets --state waiting',
    'stockade queue places tickets --buyer ann',
    'stockade queue places tickets --after 1000 --limit 1000 --json',
  ],
  async run({ config, log, json, args, options }) {
    const { buyer, state, limit, after } = options;
    const query = await namingFlags('the query', listPlaces, () =>
      parsePlaceQuery({ buyer, state, limit, after }),
    );
    const page = await withOperations({ config, log }, ({ queues }) => queues.places(args[0]!, query));
    if (json) printJson(page);
    else {
      // A page of places in some states may be empty although others follow.
      const none = `There are no such places${page.next === undefined ? '' : ' on this page'}.`;
      if (page.places.length === 0) print(none);
      else printTable(placeColumns(page.places), page.places);
      if (page.next !== undefined) note(`More follow: add --after ${page.next}`);
    }
    return EXIT_OK;
  },
};
