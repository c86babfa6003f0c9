import type { Displaced } from '../engine/contract.ts';

/** What the relay of order events reports, for the log and the metrics. */
export interface RelayEvents {
  /** Events are in the stream. */
  streamed(info: { events: number }): void;
  /** The stream was full, and its oldest events were removed. */
  displaced(info: Displaced): void;
  /** The webhook has accepted events. */
  posted(info: { events: number; tookMs: number }): void;
  /** The webhook has not accepted them. They are tried again in `retryMs`; `undefined`: they are given up. */
  postFailed(info: { error: unknown; events: number; attempts: number; retryMs: number | undefined }): void;
  /** Pages became dead letters: they are not tried again until an operator re-sends them. */
  gaveUp(info: { pages: readonly string[]; events: number; attempts: number; error: unknown }): void;
  /**
   * What waits, reported once a second by the process that does the work; zeros from a process that has just stopped
   * doing it.
   */
  waiting(info: {
    /** Rows of the outbox, and how long the oldest has waited. */
    rows: number;
    oldestMs: number;
    /** Pages that wait for the webhook, and how old the events of the oldest are. */
    pages: number;
    oldestPageMs: number;
    deadPages: number;
  }): void;
  /** One of the loops has failed and restarts in `retryMs`. */
  crashed(info: { loop: 'outbox' | 'webhook'; error: unknown; retryMs: number }): void;
}
