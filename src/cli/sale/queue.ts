import { Option } from 'commander';
import { parseChange } from '../../engine/sale/sale-change.ts';
import type { QueueStatus } from '../../operations/queue/queue-operations.ts';
import type { SaleStatus } from '../../operations/sale-operations.ts';
import { AUTHOR_OPTIONS, authorOf } from '../command/author.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { confirmation } from '../command/confirm.ts';
import { namingFlags } from '../command/flags.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK, UsageError } from '../terminal/explain.ts';
import { invokedAs } from '../terminal/invoked-as.ts';
import { note, plural, print, printJson } from '../terminal/output.ts';
import { QUEUE_OPTIONS, queueInput } from './queue-options.ts';
import { commitmentOf, drawRemark, fitRemark } from './queue-remarks.ts';
import { saleSheet } from './show-sale.ts';

const YES = new Option('--yes', "don't ask before a queue is turned off");

export const saleQueue: CommandSpec = {
  name: 'queue <sale>',
  summary: 'turn the queue of a sale on or off, or change how it works',
  details:
    'With a queue, buyers ask for a place, and free units go to the places in their order, as offers. Nobody buys without an ' +
    'offer, so the pages of the shop must support a queue. Changes take effect at once, also while the sale sells. A flag ' +
    'that is left out stays as it is. `stockade queue` shows the queue, and stops and paces its offers. The command asks ' +
    'before it turns a queue off: units that are then sold without the queue do not come back to it.',
  options: [...QUEUE_OPTIONS, ...AUTHOR_OPTIONS, YES],
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: [
    'stockade sale queue tickets --queue fifo --reason "more buyers than thought"',
    'stockade sale queue tickets --offer-seconds 300',
    'stockade sale queue tickets --queue off',
  ],
  async run({ config, log, json, args, options: given }) {
    const saleId = args[0]!;
    const author = authorOf(given);
    const input = queueInput(given);
    if (Object.keys(input).length === 0)
      throw new UsageError('say what to change: give --queue, --offer-seconds or another option; add --help');
    const { before, after, commitment } = await namingFlags('the change', saleQueue, () => {
      const { change } = parseChange({ action: 'queue', ...input });
      const confirm =
        input.queue === 'off'
          ? confirmation(`turn off the queue of ${saleId}`, given, { isFinal: false })
          : undefined;
      return withOperations({ config, log }, async ({ sales, queues }) => {
        const before = await sales.show(saleId);
        await confirm?.(async () =>
          before.queue === undefined || before.state === 'closed'
            ? []
            : toldOfTurningOff(await queues.showQueue(saleId)),
        );
        const after = await sales.change(saleId, change, author);
        const isNewOrder = before.queue !== after.queue;
        return { before, after, commitment: isNewOrder ? await commitmentOf(queues, after) : undefined };
      });
    });
    if (json) printJson(after);
    else print(saleSheet(after, commitment));
    for (const line of remarks(before, after, commitment)) note(line);
    return EXIT_OK;
  },
};

/** What turning off the queue does to those who are in it. */
export function toldOfTurningOff({ counts, behindHead }: QueueStatus): string[] {
  const waiting = counts
    ? `${plural(counts.waiting, 'place')} ${counts.waiting === 1 ? 'waits' : 'wait'}`
    : `Up to ${plural(behindHead, 'place')} wait`;
  return [
    `${waiting} in order. From now on the first to buy gets the units.`,
    counts?.offered === 0
      ? 'There is no offer that its buyer may still accept.'
      : `${counts ? plural(counts.offered, 'offer') : 'Offers'} that buyers have can still be accepted, until their time is over.`,
    'The places stay. If you turn the queue on again, they wait as before, for the units that are left then.',
  ];
}

/** What an operator should know after the change. */
export function remarks(before: SaleStatus, after: SaleStatus, commitment?: string): string[] {
  const isNewFit = before.queue === undefined || before.fit !== after.fit;
  const fit = isNewFit ? fitRemark(after) : [];
  if (before.queue === after.queue) return fit;
  if (after.queue === undefined)
    return [
      'The queue is off: buyers buy directly. Those who wait keep their places.',
      `To turn it on again, for the units that are left then: ${invokedAs()} sale queue ${after.id} --queue ${before.queue}`,
    ];
  const sells = after.state === 'open' && Date.parse(after.startsAt) <= Date.now();
  const order = {
    fifo: 'Places are served in the order in which they are given.',
    draw: `Places that are given before ${after.startsAt} are shuffled then; later ones stand behind them.`,
  }[after.queue as 'fifo' | 'draw'];
  if (before.queue === 'draw') {
    const lost = 'There will be no draw, although the buyers were told of one.';
    const wayBack = `Until ${after.startsAt}, --queue draw brings it back with the same commitment.`;
    return [order, Date.parse(after.startsAt) > Date.now() ? `${lost} ${wayBack}` : lost, ...fit];
  }
  if (before.queue !== undefined) return [order, ...drawRemark(after, commitment), ...fit];
  return [
    sells
      ? 'The queue is on, and the sale sells: from now on a purchase without an offer is refused (offer_required).'
      : 'The queue is on: buyers can ask for places now.',
    order,
    ...drawRemark(after, commitment),
    ...fit,
    ...(sells && after.committedOrders > 0
      ? [
          `${plural(after.committedOrders, 'earlier order')} ${after.committedOrders === 1 ? 'stays as it is' : 'stay as they are'}.`,
        ]
      : []),
    `To see it: ${invokedAs()} queue show ${after.id}`,
  ];
}
