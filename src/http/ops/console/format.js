// Numbers, times and states as the console writes them.
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const date = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

export const number = (n) => (n === undefined ? '–' : whole.format(n));

/** Per second: a fraction matters only when there is little. */
export const rate = (n) => (n === undefined ? '–' : n > 0 && n < 10 ? tenth.format(n) : whole.format(n));

export const plural = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

export const time = (iso) => (iso === undefined || iso === null ? '' : date.format(new Date(iso)));

export const seconds = (s) => (s < 1 ? `${Math.round(s * 1_000)} ms` : `${tenth.format(s)} s`);

/** Units that the sale has had in all. */
export const unitsOf = (sale) => sale.stock + sale.movedUnits;

/** Units that buyers have bought, without offers: with a queue as Postgres counts them. `undefined`: it can't be told now. */
export const soldOf = (sale) => {
  if (sale.remaining === undefined) return undefined;
  if (sale.offeredUnits !== undefined) return sale.committedUnits - sale.offeredUnits;
  return sale.behindHead === undefined ? unitsOf(sale) - sale.remaining : undefined;
};

/** Sold in the backend less sold in Postgres; `undefined` while it can't be told. */
export const driftOf = (sale) =>
  sale.remaining === undefined ? undefined : unitsOf(sale) - sale.remaining - sale.committedUnits;

/** No unit is left, and yet some are not sold: they are offered, or their offers are on their way to Postgres. */
const isInOffers = (sale) =>
  sale.remaining === 0 &&
  sale.behindHead !== undefined &&
  (sale.offeredUnits !== 0 || unitsOf(sale) > sale.committedUnits);

export function driftText(drift) {
  if (drift === undefined) return 'The segments can’t be counted now.';
  if (drift === 0) return 'The backend and Postgres agree.';
  return drift > 0
    ? `${plural(drift, 'unit')} sold in the backend and not in Postgres yet.`
    : `${plural(-drift, 'unit')} back in Postgres and not in the backend yet.`;
}

/** The state in a word or two, and the kind of state that its colour shows. */
export function stateOf(sale, now = Date.now()) {
  if (sale.archivedAt) return { text: 'archived', kind: 'off' };
  if (sale.state !== 'open') return { text: sale.state, kind: sale.state === 'paused' ? 'warn' : 'off' };
  if (sale.remaining === undefined) return { text: 'rebuilding', kind: 'warn' };
  if (Date.parse(sale.startsAt) > now) return { text: 'not started', kind: 'off' };
  if (sale.endsAt && Date.parse(sale.endsAt) <= now) return { text: 'ended', kind: 'off' };
  if (isInOffers(sale)) return { text: 'in offers', kind: 'good' };
  return sale.remaining === 0 ? { text: 'sold out', kind: 'off' } : { text: 'selling', kind: 'good' };
}
