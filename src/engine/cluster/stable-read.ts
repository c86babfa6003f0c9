/** A sale whose units keep moving is read this many times. Then the last read is returned, which may mix several instants. */
const MAX_READS = 10;

export interface StableRead<Seen> {
  readonly seen: Seen;
  /** Whether the last two reads agree. */
  readonly isStable: boolean;
}

/**
 * Reads until two reads in a row agree, MAX_READS times at most. If they agree, there was an instant at which this was the state. A
 * single Redis needs no such repetition, because one script reads everything at one instant.
 *
 * @param compared the part that must not have changed between two reads
 */
export async function readUntilStable<Seen>(
  read: () => Promise<Seen>,
  compared: (seen: Seen) => unknown,
): Promise<StableRead<Seen>> {
  for (let [reads, last] = [1, '']; ; reads++) {
    const seen = await read();
    const text = JSON.stringify(compared(seen));
    const isStable = text === last;
    if (isStable || reads === MAX_READS) return { seen, isStable };
    last = text;
  }
}
