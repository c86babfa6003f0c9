import { Option } from 'commander';
import { InvalidInput } from '../../engine/errors.ts';
import { isOrderId } from '../../engine/order-id.ts';
import { parseOrderEdit } from '../../operations/order-edit.ts';
import { type OrderChange, PAY_TYPES, type PayType } from '../../operations/order-operations.ts';
import { parseRefundsQuery } from '../../operations/order-query.ts';
import { AUTHOR_OPTIONS, authorOf } from '../command/author.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { confirmation, YES_OPTION } from '../command/confirm.ts';
import { namingFlags, parsedOrText } from '../command/flags.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK, UsageError } from '../terminal/explain.ts';
import { print, printJson } from '../terminal/output.ts';
import { noteMore, PAGE_OPTIONS } from '../terminal/pages.ts';
import { printTable } from '../terminal/table.ts';
import { exportCommand } from './export.ts';
import { type FinalKind, isFinal, toldOf } from './final-changes.ts';
import { listOrders } from './list.ts';
import { expectDone, orderSheet, REFUND_COLUMNS } from './show-order.ts';

const EXAMPLE_ID = '662207995405477814';

/** @throws InvalidInput if the text can't be the id of any order, so that it is not searched for */
function orderIdFrom([id]: readonly string[]): string {
  if (isOrderId(id!)) return id!;
  const problem = `is ${JSON.stringify(id)}, but must be the number of an order, such as ${EXAMPLE_ID}`;
  throw new InvalidInput('the order id is not valid', [{ field: '<id>', problem }]);
}

const showOrder: CommandSpec = {
  name: 'show <id>',
  summary: 'show one order: its buyer, its units and its status',
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: [`stockade order show ${EXAMPLE_ID}`],
  async run({ config, log, json, args }) {
    const orderId = orderIdFrom(args);
    const outcome = await withOperations({ config, log }, ({ orders }) => orders.showOrder(orderId));
    const { order } = expectDone(outcome, orderId);
    if (json) printJson(order);
    else print(orderSheet(order));
    return EXIT_OK;
  },
};

interface ChangeSpec extends Pick<CommandSpec, 'summary' | 'details' | 'options'> {
  readonly kind: OrderChange['kind'];
  readonly change: (options: Readonly<Record<string, unknown>>) => OrderChange;
}

const EXAMPLE_REASONS: Readonly<Record<OrderChange['kind'], string>> = {
  pay: 'transfer came by post',
  cancel: 'asked by telephone',
  redeem: 'scanner was broken',
  refund: 'concert was moved',
};

function changeCommand({ kind, change, options: own = [], ...spec }: ChangeSpec): CommandSpec {
  return {
    ...spec,
    options: [...own, ...AUTHOR_OPTIONS, ...(isFinal(kind) ? [YES_OPTION] : [])],
    name: `${kind} <id>`,
    settings: SALE_SETTINGS,
    defaults: QUIET,
    examples: [
      `stockade order ${kind} ${EXAMPLE_ID}`,
      `stockade order ${kind} ${EXAMPLE_ID} --reason "${EXAMPLE_REASONS[kind]}"`,
    ],
    async run({ config, log, json, args, options }) {
      const orderId = orderIdFrom(args);
      const wanted = change(options);
      const author = authorOf(options);
      const confirm = isFinal(kind) ? confirmation(`${kind} order ${orderId}`, options) : undefined;
      const outcome = await withOperations({ config, log }, async ({ sales, orders }) => {
        await confirm?.(async () => {
          const { order } = expectDone(await orders.showOrder(orderId), orderId);
          return toldOf(kind as FinalKind, order, await sales.show(order.saleId));
        });
        return orders.changeOrder(orderId, wanted, author);
      });
      const { order, replaces } = expectDone(outcome, orderId, wanted);
      if (json) printJson({ ...order, ...(replaces !== undefined && { retaken: true, replaces }) });
      else print(orderSheet(order, replaces));
      return EXIT_OK;
    },
  };
}

const payOrder = changeCommand({
  kind: 'pay',
  summary: 'record that an order is paid',
  details:
    'If the order has expired, its units are taken again, by a new order. If there are not enough units left, ' +
    '`order refunds-due` lists the order, and the exit code is 1.',
  options: [
    new Option('--pay-type <type>', 'means of payment')
      .choices([...PAY_TYPES])
      .default('other' satisfies PayType, 'other'),
  ],
  change: ({ payType }) => ({ kind: 'pay', payType: payType as PayType }),
});

const cancelOrder = changeCommand({
  kind: 'cancel',
  summary: 'cancel an unpaid order; its units go back to the sale',
  change: () => ({ kind: 'cancel' }),
});

const redeemOrder = changeCommand({
  kind: 'redeem',
  summary: 'record that a paid order was redeemed',
  change: () => ({ kind: 'redeem' }),
});

const refundOrder = changeCommand({
  kind: 'refund',
  summary: 'record that the money of an order was paid back',
  details:
    'The units of a paid order go back to the sale. Those of an order that was paid too late went back when it expired.',
  change: () => ({ kind: 'refund' }),
});

const editOrder: CommandSpec = {
  name: 'edit <id>',
  summary: "note the shop's reference or metadata with an order",
  details: 'An empty value removes what was noted.',
  options: [
    new Option('--reference <text>', "one line, such as the cart's id"),
    new Option('--metadata <json>', 'a JSON object, which replaces the old one'),
    ...AUTHOR_OPTIONS,
  ],
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: [`stockade order edit ${EXAMPLE_ID} --reference cart-4711`],
  async run({ config, log, json, args, options: { reference, metadata, ...options } }) {
    const orderId = orderIdFrom(args);
    if (reference === undefined && metadata === undefined)
      throw new UsageError('say what to note: give --reference or --metadata');
    const { edit } = await namingFlags('the edit', editOrder, () =>
      parseOrderEdit({
        reference: reference === '' ? null : reference,
        metadata: metadata === '' ? null : parsedOrText(metadata),
      }),
    );
    const author = authorOf(options);
    const outcome = await withOperations({ config, log }, ({ orders }) =>
      orders.editOrder(orderId, edit, author),
    );
    const { order } = expectDone(outcome, orderId);
    if (json) printJson(order);
    else print(orderSheet(order));
    return EXIT_OK;
  },
};

const refundsDue: CommandSpec = {
  name: 'refunds-due [sale]',
  summary: 'list orders that were paid too late and have to be refunded, the longest due first',
  options: PAGE_OPTIONS,
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: ['stockade order refunds-due', 'stockade order refunds-due tickets --json'],
  async run({ config, log, json, args, options: { limit, after } }) {
    const page = await namingFlags('the query', refundsDue, () => {
      const query = parseRefundsQuery({ saleId: args[0], limit, after });
      return withOperations({ config, log }, ({ orders }) => orders.refundsDue(query));
    });
    if (json) printJson(page);
    else if (page.orders.length === 0) print(noneDue(after as string | undefined));
    else printTable(REFUND_COLUMNS, page.orders);
    if (!json) noteMore(page.next);
    return EXIT_OK;
  },
};

const noneDue = (after: string | undefined) =>
  after === undefined ? 'No refund is due.' : 'No more refunds are due.';

export const ORDER_COMMANDS = [
  listOrders,
  showOrder,
  payOrder,
  cancelOrder,
  redeemOrder,
  refundOrder,
  editOrder,
  refundsDue,
  exportCommand,
];
