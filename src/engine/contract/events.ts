/** Events of one kind, of orders that came with one row of the outbox. */
export interface EventPart {
  /** Id of the outbox row. With the place of an event in it, it is the id of the event: `row-place`. */
  readonly row: string;
  /** Such as `order.paid`. */
  readonly kind: string;
  /** When it happened, ISO 8601 in UTC. */
  readonly at: string;
  readonly events: number;
  /** One line per event: place in the row, order id, sale id, buyer id, quantity, separated by spaces. */
  readonly lines: string;
}

/** The oldest events, which have made room. */
export interface Displaced {
  readonly events: number;
  /** How far the stream reached back behind the youngest of them, in milliseconds; 0 if there are none. */
  readonly reachMs: number;
  /** Consumer groups that were not given all of these events, and how many they were not given. */
  readonly missed: readonly { readonly group: string; readonly events: number }[];
  /** Why nobody could look who has missed what. */
  readonly unseen?: string;
}

/** What happened to orders, for other programs of the shop to read. A ring: the oldest events make room for new ones. */
export interface EventStream {
  /** In this order, all or nothing. @param maxEvents what the stream holds afterwards, roughly */
  append(parts: readonly EventPart[], maxEvents: number): Promise<Displaced>;
}
