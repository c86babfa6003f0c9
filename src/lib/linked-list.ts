/** An item of a `LinkedList`. Only the list changes these fields. */
export interface Linked<T> {
  before: T | undefined;
  after: T | undefined;
}

/**
 * A list whose items hold their neighbours, so that any item is removed in constant time.
 *
 * A `Set` could do the same, but not for items that come and go by the thousand. When V8 gives a set a new table, the old table
 * keeps its items and points to the new one. As soon as one table is in the old generation, every later table counts as in
 * use, and so does every item that was in one of them, until the next full collection.
 */
export class LinkedList<T extends Linked<T>> {
  #first: T | undefined;
  #last: T | undefined;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get first(): T | undefined {
    return this.#first;
  }

  /** @param item in no list now */
  push(item: T): void {
    item.before = this.#last;
    if (this.#last) this.#last.after = item;
    else this.#first = item;
    this.#last = item;
    this.#length++;
  }

  /** @param item in this list now */
  remove(item: T): void {
    const { before, after } = item;
    if (before) before.after = after;
    else this.#first = after;
    if (after) after.before = before;
    else this.#last = before;
    // A removed item that is in the old generation must not keep its neighbours.
    item.before = undefined;
    item.after = undefined;
    this.#length--;
  }
}
