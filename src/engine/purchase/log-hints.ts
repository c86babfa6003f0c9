import type { TickScheduler } from '../../lib/tick-scheduler.ts';
import type { LogHint, TakeStore } from '../contract.ts';
import type { EngineEvents } from './events.ts';

/** Tells sync which logs have grown: one hint per sale and turn of the event loop, sent together with that turn's takes. */
export class LogHints {
  readonly #ticks: TickScheduler;
  readonly #takes: Pick<TakeStore, 'hint'>;
  readonly #events: EngineEvents;
  readonly #grown = new Map<string, { readonly segments: Set<number>; awaited: boolean }>();

  constructor(ticks: TickScheduler, takes: Pick<TakeStore, 'hint'>, events: EngineEvents) {
    this.#ticks = ticks;
    this.#takes = takes;
    this.#events = events;
  }

  /** @param awaited whether a buyer waits for the commit */
  grew(saleId: string, segment: number, awaited: boolean): void {
    const grown = this.#grown.get(saleId);
    if (grown) {
      grown.segments.add(segment);
      grown.awaited ||= awaited;
    } else {
      if (this.#grown.size === 0) void this.#ticks.next().then(() => this.#sendAll());
      this.#grown.set(saleId, { segments: new Set([segment]), awaited });
    }
  }

  #sendAll(): void {
    const grown = [...this.#grown];
    this.#grown.clear();
    for (const [saleId, { segments, awaited }] of grown) {
      this.#send({ saleId, segments: [...segments], awaited });
    }
  }

  #send(hint: LogHint): void {
    try {
      this.#takes.hint(hint);
    } catch (error) {
      this.#events.onFault?.(error, hint.saleId);
    }
  }
}
