/**
 * How long operators' work may take. The node and its clients both use these limits: the node abandons the work then, and a
 * client waits a little longer, so that it gets the node's answer.
 */

/** It is above the limit of one statement in Postgres. */
export const OPERATION_DEADLINE_MS = 40_000;
/**
 * `verify` reads every order of a sale, and reads again if the sale changes meanwhile. A deletion counts them in the same
 * way before it begins.
 */
export const VERIFY_DEADLINE_MS = 600_000;
