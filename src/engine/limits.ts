/**
 * Every bound of the engine, with its unit in the name, and the relations that must hold between them.
 * What an operator may change is in src/config; these are the bounds of the design.
 */

export const MAX_STOCK = 2 ** 31;
export const MAX_SEGMENTS = 1_024;
export const MAX_PER_BUYER_LIMIT = 1_000;
/** Orders that `limit_reached` names: a buyer who holds a thousand and asks on must not be told of all each time. */
export const MAX_TOLD_ORDERS = 20;
export const MAX_ID_CHARACTERS = 128;
export const MAX_SALE_ID_CHARACTERS = 64;

/** Orders in one take. Above 256 a batch gains little and holds Redis longer; Lua's unpack ends near 8,000 values. */
export const MAX_BATCH_ORDERS = 256;

/** A draft of buyers' records that nobody has loaded is let go of. Longer than it takes to write the largest. */
export const DRAFT_KEPT_MS = 3_600_000;
/** Behind the last id that a buyer can have. */
export const AFTER_ALL_IDS = '\x7f';

/** A `sold_out` answer from the board is never older than this. */
export const BOARD_REPAIR_MS = 250;
/** The board is confirmed this often, so that one late or lost confirmation does not open it. */
export const BOARD_POLL_MS = 80;

/**
 * Of the request deadline, what a purchase may spend in the queue of its lane. Once the first of a queue has waited so long,
 * all behind him would: who comes then is refused at once, so that the rest of his time is not wasted on a queue that is too
 * long, and the batches hold nobody who has gone.
 */
export const QUEUE_SHARE = 0.25;

/** Deadlines are looked at this often: an answer is at most this much late. */
export const DEADLINE_SWEEP_MS = 10;

/**
 * Ids and keys travel in order records and log entries, whose fields are separated by spaces:
 * visible ASCII, no spaces, nothing to escape.
 */
export const ID_PATTERN = new RegExp(`^[\\x21-\\x7e]{1,${MAX_ID_CHARACTERS}}$`);
/** Keys that begin so belong to late payments, which take their units anew (orders/late-payment.ts); no client may use them. */
export const RETAKE_PREFIX = 'retake:';
/** Sale ids are also part of key names and hash tags (`{saleId:segment}`): no braces, no colons. */
export const SALE_ID_PATTERN = new RegExp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,${MAX_SALE_ID_CHARACTERS - 1}}$`);

if (BOARD_POLL_MS * 3 > BOARD_REPAIR_MS) {
  throw new Error(
    `BOARD_POLL_MS ${BOARD_POLL_MS} leaves no room for a lost poll within ${BOARD_REPAIR_MS} ms`,
  );
}
