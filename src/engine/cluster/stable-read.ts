/** Reads of a sale whose units keep moving; then the last read is returned. */
const MAX_LOOKS = 10;

/**
 * Reads until two reads in a row agree: then there was an instant at which this was the state. One Redis reads at one
 * instant instead.
 *
 * @param compared the part that must not have changed between two reads
 */
export async function readUntilStable<Seen>(
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
