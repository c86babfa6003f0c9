/** Looks at a sale whose units move all the time, before the last one is told. */
const MAX_LOOKS = 10;

/**
 * What one Redis reads at one instant is read here until two looks have found the same: then there was an instant at which it
 * was so.
 *
 * @param compared what must not have changed between the two; all else may
 */
export async function standingStill<Seen>(
  look: () => Promise<Seen>,
  compared: (seen: Seen) => unknown,
): Promise<Seen> {
  for (let [looks, last] = [1, '']; ; looks++) {
    const seen = await look();
    const text = JSON.stringify(compared(seen));
    if (text === last || looks === MAX_LOOKS) return seen;
    last = text;
  }
}
