/** An event as other programs receive it: in the stream, or at the webhook. See docs/events.md. */
export interface OrderEvent {
  /** The same each time the event is delivered. */
  readonly id: string;
  /** `order.committed`, `order.paid`, `offer.made` … */
  readonly kind: string;
  readonly orderId: string;
  readonly saleId: string;
  readonly buyerId: string;
  readonly quantity: number;
  /** ISO 8601 in UTC. */
  readonly at: string;
  /** As the order has them when the event is delivered. */
  readonly reference?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** A receiver of events outside the stream. */
export interface Receiver {
  /**
   * Resolves when the receiver has accepted all events. @param events in order, at least one. @throws if it has not,
   * or may not have
   */
  deliver(events: readonly OrderEvent[], signal: AbortSignal): Promise<void>;
}
