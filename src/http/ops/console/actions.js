// What operators do with a sale: what each action says before, and what it sends.
import { call, saleUrl } from './api.js';
import { ask, REASON } from './dialogs.js';
import { number, plural, stateOf, unitsOf } from './format.js';

const MAX_SEGMENTS = 1_024;
const nameOf = ({ id, title }) => (title === '' ? id : `${title} (${id})`);
const leftOf = ({ remaining }) =>
  remaining === undefined ? 'The units left can’t be counted now.' : `${plural(remaining, 'unit')} left now.`;

/** @param {string} reason may be empty: then none is sent */
async function change(sale, body, reason) {
  return call('PATCH', saleUrl(sale.id), reason ? { ...body, reason } : body);
}

export function pause(sale) {
  ask({
    title: `Pause ${nameOf(sale)}`,
    go: 'Pause the sale',
    fields: [REASON],
    lines: () => [
      leftOf(sale),
      ...(sale.state === 'paused' ? ['It is paused already.'] : []),
      'Once this node answers, no node sells it any more. Buyers are told that it is paused.',
      `The ${plural(sale.committedOrders, 'order')} so far stay, and can be paid and cancelled.`,
      'Resume makes it sell again.',
    ],
    run: async ({ reason }) => {
      await change(sale, { action: 'pause' }, reason);
      return `${sale.id} is paused.`;
    },
  });
}

export function resume(sale) {
  ask({
    title: `Resume ${nameOf(sale)}`,
    go: 'Resume the sale',
    fields: [REASON],
    lines: () => [
      leftOf(sale),
      ...(sale.state === 'open' ? ['It is resumed already.'] : []),
      'Every node sells it again within 250 ms, inside the sale’s window.',
    ],
    run: async ({ reason }) => {
      await change(sale, { action: 'resume' }, reason);
      return `${sale.id} is resumed.`;
    },
  });
}

const unitsField = {
  name: 'units',
  label: 'Units',
  type: 'number',
  min: 1,
  step: 1,
  required: true,
  inputmode: 'numeric',
};

export function topUp(sale) {
  ask({
    title: `Top up ${nameOf(sale)}`,
    go: 'Add the units',
    fields: [unitsField, REASON],
    lines: ({ units }) => [
      movedText(sale, Number(units)),
      ...topUpLines(sale),
      'A withdrawal takes the units out again, as long as they are not sold.',
    ],
    run: async ({ units, reason }) => {
      const after = await change(sale, { action: 'top-up', units: Number(units) }, reason);
      return `${plural(Number(units), 'unit')} added to ${sale.id}: ${number(after.remaining)} left.`;
    },
  });
}

function topUpLines(sale) {
  if (sale.remaining === undefined) return [];
  const { text } = stateOf(sale);
  if (text === 'selling') return ['The sale goes on selling meanwhile.'];
  if (text === 'in offers')
    return [
      `All other units are sold or offered. ${sale.behindHead > 0 ? 'The new ones are offered to those who wait.' : 'The sale sells again.'}`,
    ];
  if (text === 'sold out') return ['The sale is sold out: it sells again.'];
  return [`The sale is ${text} and does not sell: a top-up does not change that.`];
}

export function withdraw(sale) {
  ask({
    title: `Withdraw units from ${nameOf(sale)}`,
    go: 'Withdraw the units',
    fields: [unitsField, REASON],
    lines: ({ units }) => {
      const left = sale.remaining - Number(units);
      return [
        movedText(sale, -Number(units)),
        ...(left < 0 ? ['That is more than what is left: the node will refuse it, and change nothing.'] : []),
        ...(left === 0 ? ['Nothing is left then: buyers are told that it is sold out.'] : []),
        'Only unsold units are taken. No order is touched.',
        'A top-up brings the units back, but not the purchases that are refused until then.',
      ];
    },
    run: async ({ units, reason }) => {
      const after = await change(sale, { action: 'withdraw', units: Number(units) }, reason);
      return `${plural(Number(units), 'unit')} withdrawn from ${sale.id}: ${number(after.remaining)} left.`;
    },
  });
}

function movedText(sale, units) {
  const whole = unitsOf(sale);
  if (!units || sale.remaining === undefined) return leftOf(sale);
  const more = (n) => number(Math.max(0, n + units));
  return `Left: ${number(sale.remaining)} now, ${more(sale.remaining)} after. In all: ${number(whole)} now, ${more(whole)} after.`;
}

export function resize(sale) {
  ask({
    title: `Resize ${nameOf(sale)}`,
    go: 'Resize the sale',
    fields: [
      {
        ...unitsField,
        name: 'segments',
        label: 'Segments',
        max: MAX_SEGMENTS,
        value: String(sale.segments),
        hint: `1 to ${number(MAX_SEGMENTS)}; more segments let more batches of orders be taken at the same time.`,
      },
      REASON,
    ],
    lines: ({ segments }) => [
      `${plural(sale.segments, 'segment')} now, ${number(Number(segments) || sale.segments)} after.`,
      `The records of the buyers of ${plural(sale.committedOrders, 'order')} are copied while the sale sells. Then buyers wait for a moment; none is refused.`,
      'It takes some seconds. Another resize can undo it.',
    ],
    run: async ({ segments, reason }) => {
      const after = await change(sale, { action: 'resize', segments: Number(segments) }, reason);
      return `${sale.id} has ${plural(after.segments, 'segment')} now.`;
    },
  });
}

/** Asks the node first what would be moved. */
export async function rebalance(sale) {
  const url = `${saleUrl(sale.id)}/rebalance`;
  const plan = await call('POST', url, { dryRun: true });
  const units = (moves) => moves.reduce((sum, move) => sum + move.units, 0);
  const range = (left) =>
    left.length === 0 ? 'none' : `${number(Math.min(...left))} to ${number(Math.max(...left))}`;
  ask({
    title: `Rebalance ${nameOf(sale)}`,
    go: 'Move the units',
    lines: () =>
      plan.moves.length === 0
        ? [
            'The segments are even already: nothing would be moved.',
            `Units in a segment: ${range(plan.before)}.`,
          ]
        : [
            `${plural(units(plan.moves), 'unit')} in ${plural(plan.moves.length, 'move')} between segments, if no purchase comes meanwhile.`,
            `Units in a segment: ${range(plan.before)} now, ${range(plan.after)} after.`,
            'How many units the sale has does not change, nor whether it sells.',
          ],
    run: async () => {
      const { moves } = await call('POST', url, { dryRun: false });
      return `${plural(units(moves), 'unit')} of ${sale.id} moved between segments.`;
    },
  });
}

export function repair(sale, report, repaired) {
  const faults = report.differences.filter(({ isFault }) => isFault);
  ask({
    title: `Repair ${nameOf(sale)}`,
    go: 'Repair the sale',
    typed: sale.id,
    lines: () => [
      `${plural(faults.length, 'fault')} found by the last verification: ${faults.map(({ cause, units }) => `${cause} (${plural(units, 'unit')})`).join(', ') || 'none'}.`,
      'The node verifies again, and changes the stores where a cause is proven. What is not proven stays, and the report says why.',
      'Lost writes are repaired by a rebuild, during which buyers wait.',
    ],
    run: async () => {
      const after = await call('POST', `${saleUrl(sale.id)}/verify`, { repair: true });
      repaired(after);
      const done = after.repairs.filter((each) => each.done).length;
      return `${number(done)} of ${plural(after.repairs.length, 'repair')} done on ${sale.id}.`;
    },
  });
}

export function recover(sale, begun) {
  ask({
    title: `Rebuild ${nameOf(sale)} from Postgres`,
    go: 'Rebuild the sale',
    typed: sale.id,
    lines: () => [
      `All ${plural(sale.segments, 'segment')} are frozen, their logs are saved to Postgres, and ${plural(sale.committedOrders, 'order')} ${sale.committedOrders === 1 ? 'is' : 'are'} loaded into new segments: generation ${number(sale.generation)} becomes ${number(sale.generation + 1)}.`,
      'Buyers wait until that is done. Purchases whose time is over by then are refused as unavailable.',
      'Nodes do this by themselves when Redis has lost data: do it by hand only if the stores disagree and a repair does not help.',
    ],
    run: async () => {
      begun(await call('POST', `${saleUrl(sale.id)}/recover`));
      return `The rebuild of ${sale.id} has begun.`;
    },
  });
}
