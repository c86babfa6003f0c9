/** What servers reply, or ioredis says for them, when they did nothing of what they were asked for. */

/** A server of a cluster does not have the keys, or not all of them while they move. */
const REDIRECT = /^(MOVED|ASK|TRYAGAIN)\b/;
/** A server starts, is full, is busy with a script, has become a replica, or lacks a right; or the command could not be sent. */
const REFUSAL =
  /^(OOM|LOADING|READONLY|MISCONF|NOREPLICAS|NOSCRIPT|BUSY|CLUSTERDOWN|MASTERDOWN|NOAUTH|NOPERM|Stream isn't writeable)\b/;

/** @param reason see `replyReason` */
export const isRedirect = (reason: string): boolean => REDIRECT.test(reason);

/** Redirects are among them. @param reason see `replyReason` */
export const isRefusal = (reason: string): boolean => REFUSAL.test(reason) || isRedirect(reason);
