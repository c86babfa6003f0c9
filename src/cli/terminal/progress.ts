import { Presets, SingleBar } from 'cli-progress';
import { hasRoomFor } from './sketch.ts';

export interface Progress {
  /** @param total if it has changed */
  update(done: number, total?: number): void;
  stop(): void;
}

/** Shows a progress bar if stderr is a terminal that can draw it in one place. @param unit what is counted */
export function progressBar(total: number, unit: string): Progress {
  if (!hasRoomFor(1)) return { update: () => {}, stop: () => {} };
  const format = `{bar} {value}/{total} ${unit}, {duration_formatted}`;
  const bar = new SingleBar(
    { format, stream: process.stderr, clearOnComplete: true },
    Presets.shades_classic,
  );
  bar.start(total, 0);
  return {
    update(done, newTotal) {
      if (newTotal !== undefined) bar.setTotal(newTotal);
      bar.update(done);
    },
    stop: () => bar.stop(),
  };
}
