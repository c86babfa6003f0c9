/** Events of one kind, from one row of the outbox. */
export interface EventPart {
  /** Id of the outbox row. An event's id is `row-place`, with its place in the row. */
  readonly row: string;
  /** Such as `order.paid`. */
  readonly kind: string;
  /** When it happened, ISO 8601 in UTC. */
  readonly at: string;
  readonly events: number;
  /**
   * One line per event: place in the row, order id, sale id, buyer id, quantity, separated by spaces. If the shop has noted
   * something with the order, a tab, its reference, a tab and its metadata as JSON follow; either may be empty.
   */
  readonly lines: string;
}

/** The oldest events, which were removed to make room. */
export interface Displaced {
  readonly events: number;
  /** Milliseconds from the newest removed event to the newest event of the stream; 0 if none was removed. */
  readonly reachMs: number;
  /** Consumer groups that were not given all of the removed events, and how many they missed. */
  readonly missed: readonly { readonly group: string; readonly events: number }[];
  /** Why `missed` could not be determined. */
  readonly unseen?: string;
}

/**
 * The stream of order events, for other programs of the shop. It is a ring: the oldest events make room for new ones.
 */
export interface EventStream {
  /** Appends the parts in this order, all or nothing. @param maxEvents bound of the stream's length, approximate */
  append(parts: readonly EventPart[], maxEvents: number): Promise<Displaced>;
}
