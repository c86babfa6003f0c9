/** An empty queue keeps an array of up to this length for later items. Every lane of every sale has a queue. */
const KEPT_PLACES = 32;

/** A queue on an array: shift is amortised O(1), where Array.shift moves every element. */
export class Fifo<T extends object> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  /** Length of the array, including the places of removed items. */
  get places(): number {
    return this.#items.length;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  /** Removes all items for which `isKept` is false. Takes time in proportion to the length. */
  keep(isKept: (item: T) => boolean): void {
    this.#items = this.#items.slice(this.#head).filter((item) => isKept(item!));
    this.#head = 0;
  }

  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head];
    // Otherwise the array would keep the removed item from the garbage collector.
    this.#items[this.#head++] = undefined;
    const isEmpty = this.#head === this.#items.length;
    if (isEmpty ? this.#head > KEPT_PLACES : this.#head > 1_024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Removes and returns all items, in order. */
  drain(): T[] {
    const items = this.#items.slice(this.#head) as T[];
    this.#items = [];
    this.#head = 0;
    return items;
  }
}
