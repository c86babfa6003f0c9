/** A sale whose units keep moving is read this often; then the last read is returned. */
const MAX_READS = 10;

/**
 * Reads until two reads in a row agree: then there was an instant at which this was the state. A single Redis needs no such
 * repetition, because one script reads everything at one instant.
 *
 * @param compared the part that must not have changed between two reads
 */
export async function readUntilStable<Seen>(
  read: () => Promise<Seen>,
  compared: (seen: Seen) => unknown,
): Promise<Seen> {
  for (let [reads, last] = [1, '']; ; reads++) {
    const seen = await read();
    const text = JSON.stringify(compared(seen));
    if (text === last || reads === MAX_READS) return seen;
    last = text;
  }
}
