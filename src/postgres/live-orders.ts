/**
 * Orders that live: those that hold their units and count against their buyer's limit. As an SQL list, spelled as in the
 * migrations, because an index serves only who asks with its own words.
 */
export const LIVE = "('unpaid', 'paid', 'redeemed')";
