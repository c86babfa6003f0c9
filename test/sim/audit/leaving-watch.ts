/**
 * Checks for the auditor how buyers and sales leave: an erased buyer's orders stay, under a pseudonym, and the id does not come
 * back with them; the orders of a sale are gone only after its deletion was accepted, and none is added to it then.
 */
import type { Truth } from './books.ts';

export class LeavingWatch {
  readonly #fail: (what: string) => never;
  /** Buyers by their pseudonyms. */
  readonly #buyers = new Map<string, string>();
  /** Buyers by their orders, as far as these were seen or promised. */
  readonly #orders = new Map<string, string>();
  /** Buyers whose erasure was in Postgres at any time. */
  readonly #asked = new Set<string>();
  /** Orders that must have a pseudonym from now on. */
  readonly #erased = new Set<string>();
  #open: ReadonlySet<string> = new Set();
  #ordersLeft: number | undefined;

  constructor(fail: (what: string) => never) {
    this.#fail = fail;
  }

  /** Whose id this is, or whose pseudonym. */
  buyerOf(name: string): string {
    return this.#buyers.get(name) ?? name;
  }

  /** Whether an erasure of this buyer was in Postgres at any time. */
  wasAsked(buyer: string): boolean {
    return this.#asked.has(buyer);
  }

  /** Whether an erasure of this buyer waits or is under way. */
  isOpen(buyer: string): boolean {
    return this.#open.has(buyer);
  }

  /** An order that is in a log, or in Postgres. */
  promised(orderId: string, buyerId: string): void {
    this.#orders.set(orderId, buyerId);
  }

  check({ orders, erasures, isDeleting }: Truth): void {
    for (const { buyer, pseudonym } of erasures) {
      this.#buyers.set(pseudonym, buyer);
      this.#asked.add(buyer);
    }
    const open = new Set(erasures.map(({ buyer }) => buyer));
    for (const [orderId, buyer] of this.#orders)
      if (this.#open.has(buyer) && !open.has(buyer)) this.#erased.add(orderId);
    this.#open = open;
    for (const { id, buyer } of orders) {
      if (this.#erased.has(id) && !this.#buyers.has(buyer))
        this.#fail(`erased: order ${id} has the id of ${buyer} again`);
      this.#orders.set(id, this.buyerOf(buyer));
    }
    const most = this.#ordersLeft ?? orders.length;
    if (isDeleting && orders.length > most)
      this.#fail(`deleted: the sale has ${orders.length} orders, and had ${most} left`);
    this.#ordersLeft = isDeleting ? orders.length : undefined;
  }

  /** The sale has gone from Postgres. @param last what was seen of it last */
  gone({ orders, isDeleting }: Truth): void {
    if (!isDeleting) this.#fail('deleted: the sale is gone, and its deletion was not accepted');
    if (orders.length > 0) this.#fail(`deleted: the sale is gone before ${orders.length} of its orders`);
  }
}
