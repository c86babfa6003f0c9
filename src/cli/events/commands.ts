/** Commands for dead letters: order events that the webhook did not accept. */
import { Option } from 'commander';
import { isRowId, parsePageQuery } from '../../operations/checked-input.ts';
import type { DeadLetter } from '../../operations/event-operations.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { namingFlags } from '../command/flags.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK, UsageError } from '../terminal/explain.ts';
import { number, plural, print, printJson } from '../terminal/output.ts';
import { noteMore, PAGE_OPTIONS } from '../terminal/pages.ts';
import { type Column, printTable } from '../terminal/table.ts';

const listDead: CommandSpec = {
  name: 'dead',
  summary: 'list the order events that the webhook did not accept in any attempt, the oldest first',
  options: PAGE_OPTIONS,
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: ['stockade events dead', 'stockade events dead --json'],
  async run({ config, log, json, options: { limit, after } }) {
    const query = await namingFlags('the query', listDead, () => parsePageQuery({ limit, after }, isRowId));
    const found = await withOperations({ config, log }, ({ events }) => events.deadLetters(query));
    const { total, listed, next } = found;
    if (json) printJson({ total, dead: listed, next });
    else if (total === 0) print('There are no dead letters.');
    else {
      if (listed.length > 0) printTable(DEAD_COLUMNS, listed);
      print(foot(total, listed.length, query.after === undefined));
    }
    if (!json) noteMore(next);
    return EXIT_OK;
  },
};

const resend: CommandSpec = {
  name: 'resend [id]',
  summary: 'deliver a dead letter to the webhook again, or all of them with --all',
  details: 'They are delivered next, before newer events, and the events keep their ids.',
  options: [new Option('--all', 'all dead letters')],
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: ['stockade events resend 17', 'stockade events resend --all'],
  async run({ config, log, json, args, options }) {
    const [id] = args as [string?];
    if ((id === undefined) === (options.all === undefined)) {
      throw new UsageError('events resend takes either the id of a dead letter or --all');
    }
    const resent = await withOperations({ config, log }, async ({ events }) => {
      if (id === undefined) return events.resendAllDeadLetters();
      await events.resendDeadLetter(id);
      return 1;
    });
    if (json) printJson({ resent });
    else print(`${plural(resent, 'dead letter')} will be delivered again.`);
    return EXIT_OK;
  },
};

export const EVENT_COMMANDS = [listDead, resend];

const DEAD_COLUMNS: readonly Column<DeadLetter>[] = [
  { head: 'id', of: ({ id }) => id, align: 'right' },
  { head: 'events', of: ({ kind }) => kind },
  { head: 'orders', of: ({ orderIds }) => number(orderIds.length), align: 'right', spare: 3 },
  { head: 'happened', of: ({ at }) => at, spare: 1 },
  { head: 'dead since', of: ({ deadAt }) => deadAt },
  { head: 'attempts', of: ({ attempts }) => number(attempts), align: 'right', spare: 2 },
  { head: 'error', of: ({ failedWith }) => failedWith, isText: true },
];

function foot(total: number, listed: number, isFirst: boolean): string {
  const more = total > listed ? `; ${isFirst ? 'the oldest ' : ''}${listed} are shown` : '';
  return `${plural(total, 'dead letter')}${more}.`;
}
