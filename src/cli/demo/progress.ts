import { Presets, SingleBar } from 'cli-progress';

export interface Progress {
  update(done: number): void;
  stop(): void;
}

/** A bar on stderr, if somebody watches. */
export function progressBar(total: number): Progress {
  if (!process.stderr.isTTY) return { update: () => {}, stop: () => {} };
  const format = '{bar} {value}/{total} requests, {duration_formatted}';
  const bar = new SingleBar(
    { format, stream: process.stderr, clearOnComplete: true },
    Presets.shades_classic,
  );
  bar.start(total, 0);
  return { update: (done) => bar.update(done), stop: () => bar.stop() };
}
