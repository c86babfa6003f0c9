/** An event as other programs receive it: the same members in the stream and at the webhook. See docs/events.md. */
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

/** A receiver of events outside the stream. */
export interface Receiver {
  /**
   * Resolves when the receiver has accepted all events. @param events in order, at least one. @throws if it has not,
   * or may not have
   */
  deliver(events: readonly OrderEvent[], signal: AbortSignal): Promise<void>;
}
