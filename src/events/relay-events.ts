import type { Displaced } from '../engine/contract.ts';

/** What the relay of order events tells those who watch it: the log and the metrics. */
export interface RelayEvents {
  /** Events are in the stream. */
  streamed(info: { events: number }): void;
  /** The stream was full, and its oldest events have made room. */
  displaced(info: Displaced): void;
  /** The webhook has taken events. */
  posted(info: { events: number; tookMs: number }): void;
  /** The webhook has not taken them; they are tried again in `retryMs`, but for the pages that were given up. */
  postFailed(info: { error: unknown; events: number; attempts: number; retryMs: number }): void;
  /** Pages became dead letters: they are not tried again until somebody says so. */
  gaveUp(info: { pages: readonly string[]; events: number; error: unknown }): void;
  /** What waits, as the process that works sees it once a second; zeros from one that has just stood back. */
  waiting(info: {
    /** Rows of the outbox, and how long the oldest has waited. */
    rows: number;
    oldestMs: number;
    /** Pages that wait for the webhook, and how old the events of the oldest are. */
    pages: number;
    oldestPageMs: number;
    deadPages: number;
  }): void;
  /** One of the loops has failed and starts again in `retryMs`. */
  crashed(info: { loop: 'outbox' | 'webhook'; error: unknown; retryMs: number }): void;
}
