/** An event as other programs get it: the same members in the stream and at the webhook. docs/events.md describes them. */
export interface OrderEvent {
  /** The same each time the event is delivered. */
  readonly id: string;
  /** `order.committed`, `order.paid` … */
  readonly kind: string;
  readonly orderId: string;
  readonly saleId: string;
  readonly buyerId: string;
  readonly quantity: number;
  /** ISO 8601 in UTC. */
  readonly at: string;
}

/** Who is told of events that are not read from the stream. */
export interface Receiver {
  /** Resolves once it has taken all of them. @param events in order, at least one. @throws why it has not, or may not have */
  deliver(events: readonly OrderEvent[], signal: AbortSignal): Promise<void>;
}
