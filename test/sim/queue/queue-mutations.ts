/** Planted bugs of the queue (mutations.ts). */
import type { Mutation } from '../planted/mutations.ts';

const SQL = 'src/postgres/migrations/023-queue.sql';
const ACCEPT = 'src/postgres/migrations/028-accept-offer.sql';
const OPENING = 'src/postgres/migrations/037-opening-and-pace.sql';
const EXPIRY = 'src/postgres/migrations/031-expiry-beside-locks.sql';
const HEAD = 'src/queue/head/head.ts';
const STANDING = 'src/queue/head/standing.ts';
const PRESENCE = 'src/queue/presence.ts';

export const QUEUE_MUTATIONS: readonly Mutation[] = [
  {
    name: 'queue: an offer has no key, so a repeated take makes another one',
    conditions: 'queued',
    edits: [{ file: 'src/queue/offers.ts', find: 'key: `', replace: "key: '' && `" }],
  },
  {
    name: 'queue: the key of an offer does not name the place',
    conditions: 'restlessQueue',
    edits: [
      {
        file: 'src/queue/offers.ts',
        find: '{number}`,',
        replace: '{0}`,',
      },
    ],
  },
  {
    name: 'queue: the head goes behind places that were given meanwhile',
    conditions: 'restlessQueue',
    edits: [{ file: STANDING, find: 'SET head = ?,', replace: 'SET head = greatest(?, last_number),' }],
  },
  {
    name: 'queue: numbers are compared as texts',
    conditions: 'restlessQueue',
    edits: [
      { file: 'src/queue/line.ts', find: 'ORDER BY p.number OFFSET', replace: 'ORDER BY number OFFSET' },
    ],
  },
  {
    name: 'queue: a place that waits no longer gets its offer',
    conditions: 'restlessQueue',
    edits: [{ file: OPENING, find: 'IF made <> cardinality(offers) THEN', replace: 'IF false THEN' }],
  },
  {
    name: 'queue: free units give no hope',
    conditions: 'restlessQueue',
    edits: [{ file: STANDING, find: 'SELECT (s.stock + (', replace: 'SELECT (0 + (' }],
  },
  {
    name: 'queue: units of offers give no hope',
    conditions: 'restlessQueue',
    edits: [{ file: STANDING, find: 'coalesce(sum(o.quantity), 0) FROM', replace: '0 FROM' }],
  },
  {
    name: 'queue: units that are taken and not committed give no hope',
    conditions: 'restlessQueue',
    edits: [
      {
        file: STANDING,
        find: 'SELECT (s.stock + (',
        replace: 'SELECT (coalesce(q.free_units, s.stock) + (',
      },
    ],
  },
  {
    name: 'queue: an accepted order ends when its offer would have',
    conditions: 'restlessQueue',
    edits: [
      {
        file: ACCEPT,
        find: "expires_at = (SELECT now() + s.pay_within_seconds * interval '1 second' FROM sales s WHERE s.id = stands.sale_id),",
        replace: '',
      },
    ],
  },
  {
    name: 'queue: an accepted order is still an offer',
    conditions: 'restlessQueue',
    edits: [{ file: ACCEPT, find: 'SET offer_of = NULL,', replace: 'SET offer_of = offer_of,' }],
  },
  {
    name: 'queue: the place of a lapsed offer stays offered',
    conditions: 'restlessQueue',
    edits: [
      {
        file: SQL,
        find: "AND p.number = o.offer_of AND p.state = 'offered';",
        replace: "AND p.number = o.offer_of AND p.state = 'waiting';",
      },
    ],
  },
  {
    name: 'queue: offers lapse while the sale is paused',
    conditions: 'restlessQueue',
    edits: [{ file: EXPIRY, find: 'AND (o.offer_of IS NULL OR o.sale_id <> ALL (paused))', replace: '' }],
  },
  {
    name: 'queue: an offer is accepted after its end',
    conditions: 'restlessQueue',
    edits: [
      {
        file: ACCEPT,
        find: "WHEN stands.expires_at <= now() THEN 'late'",
        replace: '',
      },
    ],
  },
  {
    name: 'queue: an offer that was begun and lost with Redis counts as made, so its place is overtaken',
    conditions: 'lostOffers',
    edits: [
      {
        file: 'src/queue/head/turn.ts',
        find: 'const isBegun = begun.has(place.number);',
        replace: 'const isBegun = begun.has(place.number); if (isBegun) continue;',
      },
    ],
  },
  {
    name: 'queue: units that come back wait for nobody until an operator changes the sale',
    conditions: 'restlessQueue',
    edits: [
      {
        file: HEAD,
        find: '#looksAgainAt = 0;',
        replace: '#looksAgainAt = 0; readonly #soldOutAt = new Map<string, number>();',
      },
      {
        file: HEAD,
        find: 'const free = unitsLeft(await backend.sales.snapshot(sale.id, sale.segments, generation));',
        replace: `const isSoldOut = this.#soldOutAt.get(sale.id) === row.revision;
          const free = isSoldOut ? 0 : unitsLeft(await backend.sales.snapshot(sale.id, sale.segments, generation));
          if (free === 0) this.#soldOutAt.set(sale.id, row.revision);`,
      },
    ],
  },
  {
    name: 'queue: presence never ends',
    conditions: 'absentees',
    edits: [{ file: PRESENCE, find: ' - 1 AND', replace: ' - 99 AND' }],
  },
  {
    name: 'queue: the entries of a draw are not fixed',
    conditions: 'lobby',
    edits: [{ file: 'src/queue/drawing.ts', find: 'coalesce(entries, last_number)', replace: 'last_number' }],
  },
  {
    name: 'queue: the draw is another one',
    conditions: 'lobby',
    edits: [
      {
        file: 'src/queue/draw/drawn-order.ts',
        find: 'const chosen = below(left, word);',
        replace: 'const chosen = below(left - 1, word);',
      },
    ],
  },
  {
    name: 'queue: an offer is made before the draw',
    conditions: 'lobby',
    edits: [
      {
        file: HEAD,
        find: "if (sale.queue!.order === 'fifo' && !drawn)",
        replace: 'if (!drawn)',
      },
    ],
  },
];
