import type { LogHint } from '../contract.ts';

/** Tells sync which logs have grown: one hint per sale and turn of the event loop, which leaves with that turn's takes. */
export class LogHints {
  readonly #nextTurn: () => Promise<void>;
  readonly #send: (hint: LogHint) => void;
  readonly #grown = new Map<string, { readonly segments: Set<number>; awaited: boolean }>();

  constructor(nextTurn: () => Promise<void>, send: (hint: LogHint) => void) {
    this.#nextTurn = nextTurn;
    this.#send = send;
  }

  /** @param awaited whether a buyer waits for his commit */
  grew(saleId: string, segment: number, awaited: boolean): void {
    const grown = this.#grown.get(saleId);
    if (grown) {
      grown.segments.add(segment);
      grown.awaited ||= awaited;
    } else {
      if (this.#grown.size === 0) void this.#nextTurn().then(() => this.#sendAll());
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
}
