import { Option } from 'commander';
import { InvalidInput } from '../../engine/errors.ts';
import { isOrderId } from '../../engine/order-id.ts';
import { type OrderChange, PAY_TYPES, type PayType } from '../../operations/order-operations.ts';
import { AUTHOR_OPTIONS, authorOf } from '../command/author.ts';
import { type CommandSpec, QUIET, SALE_SETTINGS } from '../command/command.ts';
import { withOperations } from '../command/open-operations.ts';
import { EXIT_OK } from '../terminal/explain.ts';
import { print, printJson } from '../terminal/output.ts';
import { expectDone, orderSheet, orderTable } from './show-order.ts';

const EXAMPLE_ID = '662207995405477814';

/** @throws InvalidInput for what no order can be called: it need not be looked for, and will not come later either */
function orderIdFrom([id]: readonly string[]): string {
  if (isOrderId(id!)) return id!;
  const problem = `is ${JSON.stringify(id)}: must be the number of an order, such as ${EXAMPLE_ID}`;
  throw new InvalidInput('the order id is not valid', [{ field: '<id>', problem }]);
}

const showOrder: CommandSpec = {
  name: 'show <id>',
  summary: 'show one order: whose, what, and what has become of it',
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: [`stockade order show ${EXAMPLE_ID}`],
  async run({ config, log, json, args }) {
    const orderId = orderIdFrom(args);
    const outcome = await withOperations({ config, log }, (_, orders) => orders.showOrder(orderId));
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
    options: [...own, ...AUTHOR_OPTIONS],
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
      const outcome = await withOperations({ config, log }, (_, orders) =>
        orders.changeOrder(orderId, wanted, author),
      );
      const { order, replaces } = expectDone(outcome, orderId, wanted);
      if (json) printJson({ ...order, ...(replaces !== undefined && { retaken: true, replaces }) });
      else print(orderSheet(order, replaces));
      return EXIT_OK;
    },
  };
}

const payOrder = changeCommand({
  kind: 'pay',
  summary: 'note that an order is paid',
  details:
    'If it has expired, its units are taken anew, by another order; if they can no longer be had, the order is listed by ' +
    '`order refunds-due` and the exit code is 1.',
  options: [
    new Option('--pay-type <type>', 'by what means')
      .choices([...PAY_TYPES])
      .default('other' satisfies PayType),
  ],
  change: ({ payType }) => ({ kind: 'pay', payType: payType as PayType }),
});

const cancelOrder = changeCommand({
  kind: 'cancel',
  summary: 'cancel an unpaid order: its units are sold again',
  change: () => ({ kind: 'cancel' }),
});

const redeemOrder = changeCommand({
  kind: 'redeem',
  summary: 'note that a paid order was redeemed',
  change: () => ({ kind: 'redeem' }),
});

const refundOrder = changeCommand({
  kind: 'refund',
  summary: 'note that the money of an order went back',
  details: 'The units of a paid order are sold again. Of one that was paid too late they were long ago.',
  change: () => ({ kind: 'refund' }),
});

const refundsDue: CommandSpec = {
  name: 'refunds-due [sale]',
  summary: 'list orders that were paid too late and whose money has to go back, the longest due first',
  settings: SALE_SETTINGS,
  defaults: QUIET,
  examples: ['stockade order refunds-due', 'stockade order refunds-due tickets --json'],
  async run({ config, log, json, args }) {
    const due = await withOperations({ config, log }, (_, orders) => orders.refundsDue(args[0]));
    if (json) printJson({ orders: due });
    else print(due.length === 0 ? 'No refund is due.' : orderTable(due));
    return EXIT_OK;
  },
};

export const ORDER_COMMANDS = [showOrder, payOrder, cancelOrder, redeemOrder, refundOrder, refundsDue];
