/** Sales that a shell offers: the newest ones. */
const MAX_OFFERED_SALES = 100;

/**
 * A pipeline that prints the ids of sales. Whatever answers at OPS_URL, only characters of ids pass, because shells expand
 * the words that they offer. Without a node it prints nothing.
 * @param program how the shell calls Stockade
 */
export function saleIds(program: string): string {
  const ids = "sed -n -e 1d -e '/^$/q' -e 's/^\\([A-Za-z0-9._-]*\\) .*/\\1/p'";
  return `${program} sale list --limit ${MAX_OFFERED_SALES} 2>/dev/null | ${ids}`;
}
