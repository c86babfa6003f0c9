import { Presets, SingleBar } from 'cli-progress';
import { number } from './output.ts';
import { hasRoomFor } from './sketch.ts';

export interface Progress {
  /** @param total if it has changed */
  update(done: number, total?: number): void;
  stop(): void;
}

export const NO_PROGRESS: Progress = { update: () => {}, stop: () => {} };

/** Shows a progress bar if stderr is a terminal that can draw it in one place. @param unit what is counted */
export function progressBar(total: number, unit: string): Progress {
  if (!hasRoomFor(1)) return NO_PROGRESS;
  const format = `{bar} {value}/{total} ${unit}, {duration_formatted}`;
  const bar = new SingleBar(
    { format, formatValue, stream: process.stderr, clearOnComplete: true },
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

const formatValue = (value: number, _options: unknown, type: string): string =>
  type === 'value' || type === 'total' ? number(value) : String(value);
