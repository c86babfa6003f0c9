/** A picture of the console as lines of text, in the console's words. */
import type {
  ConsolePicture,
  NodePicture,
  OtherProcess,
  Sampled,
  ShownSale,
} from '../../operations/console/console-operations.ts';
import { isInOffers, unitsOf } from '../../operations/sale-list.ts';
import { bar } from '../terminal/fit.ts';
import { columns, number, plural, visible } from '../terminal/output.ts';

const BAR_WIDTH = 12;
/** Longer ids are cut, so that the figures of all sales fit into 80 columns. */
const MAX_ID_WIDTH = 24;
/** The lines above and below the sales. */
const HEAD_ROWS = 1;
const FOOT_ROWS = 1;
/** With less room, only the figures that matter most are above the sales. */
const LOW_ROWS = 16;

export interface PictureOptions {
  /** Where the node is. */
  readonly url: string;
  /** Units sold a second, by sale. */
  readonly rates: ReadonlyMap<string, number>;
  /** Lines that there is room for. Missing: any number. */
  readonly rows?: number;
  readonly heading?: (text: string) => string;
}

export function pictureLines(
  picture: ConsolePicture,
  { url, rates, rows = Number.POSITIVE_INFINITY, heading = (text) => text }: PictureOptions,
): string[] {
  const isLow = rows < LOW_ROWS;
  const head = [
    heading(visible(`Stockade at ${url}, ${timeOf(picture.at)}`)),
    ...nodeLines(picture.node, isLow),
    ...totalsLines(picture),
    ...(isLow ? [] : [...processLines(picture), '']),
  ];
  return [...head, ...saleLines(picture.list, rates, rows - head.length, heading)];
}

function saleLines(
  list: ConsolePicture['list'],
  rates: PictureOptions['rates'],
  rows: number,
  heading: (text: string) => string,
): string[] {
  if (list?.value === undefined)
    return [visible(list?.problem ? `The sales can't be read now: ${list.problem}.` : 'Reading …')];
  const { sales, next } = list.value;
  const shown = sales.slice(0, Math.max(0, rows - HEAD_ROWS - FOOT_ROWS));
  const [titles, ...lines] = saleTable(shown, rates).split('\n');
  return [heading(titles!), ...lines, ...footOf(list, sales.length - shown.length, next !== undefined)];
}

function nodeLines({ value, problem }: Sampled<NodePicture>, isLow: boolean): string[] {
  if (value === undefined)
    return [labelled('node', problem === undefined ? 'reading …' : `can't be read now: ${problem}`)];
  const { perSecond, queue, connections, queued, waiting, sync, deadLetters = 0, notReady } = value;
  const rates =
    perSecond === undefined
      ? 'rates are known in a second'
      : `${rate(perSecond.purchases)} requests/s: ${rate(perSecond.orders)} orders/s, ${rate(perSecond.refusals)} refusals/s, ${rate(perSecond.failures)} not served/s`;
  return [
    ...(notReady === undefined ? [] : [labelled('NOT READY', notReady)]),
    ...(problem === undefined ? [] : [labelled('old', `the node can't be read now: ${problem}`)]),
    labelled('node', rates),
    ...(queue === undefined ? [] : [labelled('queue', queueText(queue))]),
    ...(isLow
      ? []
      : [
          labelled(
            '',
            `${plural(connections, 'connection')}, ${number(queued)} queued, ${number(waiting)} wait for their commit`,
          ),
        ]),
    labelled(
      'sync',
      sync === undefined
        ? 'this process runs none'
        : `${plural(sync.lagOrders, 'order')} behind, ${secondsText(sync.lagSeconds)}`,
    ),
    ...(deadLetters === 0 ? [] : [labelled('events', plural(deadLetters, 'dead letter'))]),
  ];
}

function queueText({ perSecond, streams }: NonNullable<NodePicture['queue']>): string {
  const rates =
    perSecond === undefined
      ? 'rates are known in a second'
      : `${rate(perSecond.joins)} joins/s, ${rate(perSecond.polls)} polls/s, ${rate(perSecond.failures)} not served/s`;
  return `${rates}, ${plural(streams, 'stream')}`;
}

function totalsLines({ totals: { value, ageMs = 0, problem } }: ConsolePicture): string[] {
  const why = problem === undefined ? undefined : `can't be counted now: ${problem}`;
  if (value === undefined) return [labelled('sales', why ?? 'reading …')];
  const text = value
    .map(({ state, sales, unsold }) => `${number(sales)} ${state} with ${plural(unsold, 'unsold unit')}`)
    .join(', ');
  const age = why === undefined ? '' : `, ${secondsText(ageMs / 1_000)} ago`;
  return [labelled('sales', (text || 'none') + age), ...(why === undefined ? [] : [labelled('', why)])];
}

function processLines({ process, version, others }: ConsolePicture): string[] {
  const named = others.map((other) =>
    other.version === version ? other.process : `${other.process} ${other.version}`,
  );
  const differing = others.filter(({ differs }) => differs.length > 0);
  return [
    labelled('nodes', [`${process} ${version} (this one)`, ...named].join(', ')),
    ...differing.map((other: OtherProcess) =>
      labelled('', `${other.process} has other ${other.differs.join(', ')}`),
    ),
  ];
}

function saleTable(sales: readonly ShownSale[], rates: ReadonlyMap<string, number>): string {
  const isQueued = sales.some(({ behindHead }) => behindHead !== undefined);
  const rows = sales.map((sale) => {
    const { id, remaining, committedOrders, committedUnits, title } = sale;
    const { behindHead, offeredUnits } = sale;
    const units = unitsOf(sale);
    return [
      id.length > MAX_ID_WIDTH ? `${id.slice(0, MAX_ID_WIDTH - 1)}…` : id,
      stateOf(sale),
      remaining === undefined ? '-' : number(remaining),
      number(units),
      ...(isQueued ? [behindHead, offeredUnits].map((n) => (n === undefined ? '-' : number(n))) : []),
      rates.has(id) ? rate(rates.get(id)!) : '-',
      number(committedOrders),
      remaining === undefined ? '-' : number(units - remaining - committedUnits),
      remaining === undefined ? '' : bar(units === 0 ? 0 : remaining / units, BAR_WIDTH),
      title,
    ];
  });
  return columns(rows, {
    head: [
      ...['sale', 'state', 'left', 'of', ...(isQueued ? ['waiting', 'offered'] : [])],
      ...['sold/s', 'orders', 'not in Pg', '', 'title'],
    ],
    align: ['left', 'left', ...Array<'right'>(isQueued ? 7 : 5).fill('right'), 'left', 'left'],
  });
}

function footOf(
  { problem, ageMs = 0, value }: Sampled<{ sales: readonly unknown[] }>,
  hidden: number,
  hasNext: boolean,
) {
  if (problem !== undefined)
    return [visible(`The sales can't be read now: ${problem}. These are ${secondsText(ageMs / 1_000)} old.`)];
  if (value?.sales.length === 0) return ['There are no such sales.'];
  if (hidden > 0)
    return [
      `${number(hidden)}${hasNext ? ' and more' : ''} older ${hidden === 1 && !hasNext ? 'sale' : 'sales'}`,
    ];
  return hasNext ? ['and older sales'] : [];
}

/** As the console says it. */
function stateOf(sale: ShownSale, nowMs = Date.now()): string {
  const { archivedAt, state, remaining, startsAt, endsAt } = sale;
  if (archivedAt !== undefined) return 'archived';
  if (state !== 'open') return state;
  if (remaining === undefined) return 'rebuilding';
  if (Date.parse(startsAt) > nowMs) return 'not started';
  if (endsAt !== undefined && Date.parse(endsAt) <= nowMs) return 'ended';
  if (isInOffers(sale)) return 'in offers';
  return remaining === 0 ? 'sold out' : 'selling';
}

const LABEL_WIDTH = 11;

function labelled(label: string, text: string): string {
  return label.padEnd(LABEL_WIDTH) + visible(text);
}

/** A fraction matters only when there is little. */
function rate(perSecond: number): string {
  return number(perSecond > 0 && perSecond < 10 ? Math.round(perSecond * 10) / 10 : Math.round(perSecond));
}

function secondsText(seconds: number): string {
  return seconds < 1 ? `${Math.round(seconds * 1_000)} ms` : `${number(Math.round(seconds * 10) / 10)} s`;
}

/** The time of day in the zone of this machine. */
function timeOf(at: string): string {
  return new Date(at).toLocaleTimeString('en-GB');
}
