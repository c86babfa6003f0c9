/** Processor time, user and system, that named processes use between two moments. */
export type CpuReaders<N extends string> = Readonly<Record<N, () => number>>;
/** `undefined` where the system does not report it: only Linux has it for other processes. */
export type CpuSeconds<N extends string> = Readonly<Record<N, number | undefined>>;

/** Begins to measure. @returns a function that returns the seconds used since */
export function measureCpu<N extends string>(readers: CpuReaders<N>): () => CpuSeconds<N> {
  const before = readAll(readers);
  return () => {
    const after = readAll(readers);
    const used = Object.keys(readers).map((name) => {
      const [from, to] = [before[name as N], after[name as N]];
      return [name, from === undefined || to === undefined ? undefined : to - from];
    });
    return Object.fromEntries(used) as CpuSeconds<N>;
  };
}

function readAll<N extends string>(readers: CpuReaders<N>): CpuSeconds<N> {
  const known = process.platform === 'linux';
  const values = Object.entries<() => number>(readers).map(([name, read]) => [
    name,
    known ? read() : undefined,
  ]);
  return Object.fromEntries(values) as CpuSeconds<N>;
}
