import type { Outcome, Purchase } from '../contract.ts';

/**
 * Whether the refusal is the answer, whatever the buyer's record knows of the key. Without a token that was once good
 * nothing is read for anybody; with one, a purchase may be the repetition of one that succeeded.
 */
export function isFinal(refusal: Outcome, { key }: Purchase): boolean {
  return key === '' || !mayHideRepeat(refusal);
}

/** Each refusal is named: one that is forgotten here must not become a way to the backend for whoever makes up keys. */
function mayHideRepeat(refusal: Outcome): boolean {
  switch (refusal.code) {
    case 'sold_out':
    case 'not_started':
    case 'ended':
    case 'paused':
    case 'limit_reached':
    case 'insufficient_stock':
    case 'refused':
    case 'busy':
    case 'unavailable':
      return true;
    case 'token_invalid':
      return refusal.reason !== 'alien';
    case 'token_required':
    case 'invalid_request':
    case 'unknown_sale':
    case 'idempotency_mismatch':
    case 'committed':
    case 'accepted':
    case 'unknown':
      return false;
  }
}
