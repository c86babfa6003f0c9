/**
 * How long operators' work may take. Known at both ends: the node gives up then, and its client waits a
 * little longer, so that it hears why.
 */

/** Longer than one statement in Postgres may take. */
export const OPERATION_DEADLINE_MS = 40_000;
/** `verify` reads every order of a sale, and again while the sale moves. */
export const VERIFY_DEADLINE_MS = 600_000;
