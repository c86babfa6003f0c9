/** How the events of offers are called by those who receive events, by the kind that they have in the outbox. */
const OF_OFFERS = { offered: 'offer.made', lapsed: 'offer.lapsed', declined: 'offer.declined' } as const;
/** The kinds in the outbox of the events of orders. */
const OF_ORDERS = ['committed', 'paid', 'cancelled', 'expired', 'redeemed', 'refunded', 'rejected'] as const;

/** How the events are called by those who receive them, by the kind that they have in the outbox. */
export const EVENT_KINDS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(OF_ORDERS.map((kind) => [kind, `order.${kind}`])),
  ...OF_OFFERS,
};

/** The same as SQL. @param column the kind in the outbox */
export function kindIn(column: string): string {
  const offers = Object.entries(OF_OFFERS).map(([kind, told]) => `WHEN '${kind}' THEN '${told}'`);
  return `CASE ${column} ${offers.join(' ')}
    ELSE 'order.' || ${column} END`;
}
