import type { Config } from '../config/config.ts';
import type { Teardown } from '../lib/teardown.ts';
import { traceSettings } from '../traces/settings.ts';
import { Traces } from '../traces/traces.ts';
import type { Log } from './process/log.ts';

/** The traces of this thread; `undefined` if nothing is traced. */
export async function openTraces(config: Config, log: Log, teardown: Teardown): Promise<Traces | undefined> {
  const traces = await Traces.open(traceSettings(config), log);
  if (traces) teardown.add(() => traces.close());
  return traces;
}
