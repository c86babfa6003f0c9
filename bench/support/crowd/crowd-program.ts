/** A process of buyers: connects its streams, runs them side by side, and reports the answers. */
import { Stream, type StreamPlan, type StreamResult } from './stream.ts';

export interface CrowdOrder {
  readonly url: string;
  readonly plans: readonly StreamPlan[];
}

export type CrowdMessage =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'done';
      readonly results: Readonly<Record<string, StreamResult>>;
      readonly cpuSeconds: number;
    };

const order = await nextMessage<CrowdOrder>();
const streams = order.plans.map((plan) => ({ name: plan.name, stream: new Stream(plan, order.url) }));
for (const { stream } of streams) await stream.connect();
const beginning = nextMessage<{ beginMs: number }>();
say({ kind: 'ready' });
const { beginMs } = await beginning;
const before = process.cpuUsage();
const done = await Promise.all(
  streams.map(async ({ name, stream }) => [name, await stream.run(beginMs)] as const),
);
const { user, system } = process.cpuUsage(before);
say({ kind: 'done', results: Object.fromEntries(done), cpuSeconds: (user + system) / 1e6 });
process.on('disconnect', () => process.exit());

function nextMessage<T>(): Promise<T> {
  return new Promise((resolve) => process.once('message', resolve));
}

function say(message: CrowdMessage): void {
  process.send!(message);
}
