/**
 * Every bound of the engine, with its unit in the name, and the relations that must hold between them. Settings of
 * operators are in src/config; these bounds are fixed by the design.
 */

export const MAX_STOCK = 2 ** 31;
export const MAX_SEGMENTS = 1_024;
/** Sales that a sync gives another one at once. Both loops stand still meanwhile. */
export const MAX_HANDED_OVER = 20;
export const MAX_PER_BUYER_LIMIT = 1_000;
/**
 * How many orders `limit_reached` names: a buyer who holds a thousand orders must not get all of them with each
 * answer.
 */
export const MAX_TOLD_ORDERS = 20;
export const MAX_ID_CHARACTERS = 128;
export const MAX_SALE_ID_CHARACTERS = 64;

/** Orders in one take. Above 256 a batch gains little and holds Redis longer; Lua's unpack ends near 8,000 values. */
export const MAX_BATCH_ORDERS = 256;

/** A draft that is not loaded expires after this time. It is longer than it takes to write the largest draft. */
export const DRAFT_KEPT_MS = 3_600_000;
/**
 * How long the tombstone of an archived sale refuses late publications. If a rebuild stalls for longer, its publication is not refused.
 */
export const TOMBSTONE_KEPT_MS = 86_400_000;
/** Sorts after every buyer id. */
export const AFTER_ALL_IDS = '\x7f';

/** A `sold_out` answer from the board is never older than this. */
export const BOARD_REPAIR_MS = 250;
/** How often the board is confirmed: three times within BOARD_REPAIR_MS, so that it answers although two are lost. */
export const BOARD_POLL_MS = 80;

/**
 * Part of the request deadline that a purchase may spend in its lane's queue. When the head of the queue has waited
 * longer, new purchases are refused at once: they would wait too long as well, and the batches would hold purchases
 * whose buyers have gone.
 */
export const QUEUE_SHARE = 0.25;

/** A purchase that has less time left is not sent: the take might be refused as too late, and with it the others of its batch. */
export const LEAST_TIME_TO_TAKE_MS = 20;

/** How often deadlines are checked, and so how late an answer may be. */
export const DEADLINE_SWEEP_MS = 10;

/**
 * Ids and keys are stored in order records and log entries, whose fields are separated by spaces. So ids and keys are
 * visible ASCII without spaces, and need no escaping.
 */
export const ID_PATTERN = new RegExp(`^[\\x21-\\x7e]{1,${MAX_ID_CHARACTERS}}$`);
/** Prefix of the keys of late payments, which take their units again (orders/late-payment.ts). */
export const RETAKE_PREFIX = 'retake:';
/** Prefix of the keys of the queue's offers (queue/offers.ts). */
export const OFFER_PREFIX = 'place:';
/** Clients must not use keys that begin with one of these. */
export const RESERVED_PREFIXES = [RETAKE_PREFIX, OFFER_PREFIX] as const;
/** Sale ids are also part of key names and hash tags (`{saleId:segment}`): no braces, no colons. */
export const SALE_ID_PATTERN = new RegExp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,${MAX_SALE_ID_CHARACTERS - 1}}$`);
