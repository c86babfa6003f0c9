/**
 * `npm run bench:overload`: many times the load that a node can serve, and thousands of silent connections. See
 * bench/overload/README.md.
 */
import { note } from '../../src/cli/terminal/output.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { describeMachine } from '../support/machine.ts';
import { runBench } from '../support/run.ts';
import { forgetSettings, startStoreServers } from '../support/stores.ts';
import { measureBesideSilent } from './beside-silent.ts';
import { readOptions } from './options.ts';
import { measureOverload } from './overload.ts';
import { report } from './report.ts';

const { parameters, json } = readOptions(process.argv);
forgetSettings();
await runBench(json, async () => {
  const overload = await inOwnServers((stores, teardown) => measureOverload(stores, parameters, teardown));
  const silent = await inOwnServers((stores, teardown) => measureBesideSilent(stores, parameters, teardown));
  return report(overload, silent, parameters, describeMachine({ wrk: true }));
});

async function inOwnServers<T>(
  measure: (stores: Awaited<ReturnType<typeof startStoreServers>>, teardown: Teardown) => Promise<T>,
): Promise<T> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    return await measure(await startStoreServers(teardown), teardown);
  } finally {
    await teardown.release();
  }
}
