/** The smallest id by byte order. Holdings are loaded in this order. */
export function minId(ids: readonly string[]): string {
  return ids.reduce((least, id) => (id < least ? id : least));
}
