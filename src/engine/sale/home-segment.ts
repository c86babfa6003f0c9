/**
 * The home segment of a buyer: FNV-1a over the id's characters, then MurmurHash3's 32-bit finaliser, because the low
 * bits of FNV alone are uneven for ids that differ in one digit only. Ids are ASCII, so a character is a byte.
 *
 * This function must never change: buyers' records are stored by it. Sources: Fowler/Noll/Vo,
 * http://www.isthe.com/chongo/tech/comp/fnv; Appleby, MurmurHash3 (fmix32).
 */
export function homeSegment(buyerId: string, segments: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < buyerId.length; i++) {
    hash = Math.imul(hash ^ buyerId.charCodeAt(i), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) % segments;
}
