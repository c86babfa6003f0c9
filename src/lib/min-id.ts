/** The first of some ids in the order of their bytes, which is the order in which holdings are loaded. */
export function minId(ids: readonly string[]): string {
  return ids.reduce((least, id) => (id < least ? id : least));
}
