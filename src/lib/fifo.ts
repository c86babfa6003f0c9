/** Places of an empty queue that it keeps for what comes next. There are queues in every lane of every sale. */
const KEPT_PLACES = 32;

/** A queue on an array: shift is amortised O(1), where Array.shift moves every element. */
export class Fifo<T extends object> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  /** In the array, with those of what has left. */
  get places(): number {
    return this.#items.length;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  /** Lets go of all items that are not to be kept. Takes as long as there are items. */
  keep(isKept: (item: T) => boolean): void {
    this.#items = this.#items.slice(this.#head).filter((item) => isKept(item!));
    this.#head = 0;
  }

  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head];
    // What has left must not be kept alive from here.
    this.#items[this.#head++] = undefined;
    const isEmpty = this.#head === this.#items.length;
    if (isEmpty ? this.#head > KEPT_PLACES : this.#head > 1_024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** All of them, in order; none is left. */
  drain(): T[] {
    const items = this.#items.slice(this.#head) as T[];
    this.#items = [];
    this.#head = 0;
    return items;
  }
}
