/** `npm run bench:overload`: many times what a node can carry, and thousands of silent connections. See bench/overload/README.md. */
import { note } from '../../src/cli/terminal/output.ts';
import { Releasers } from '../../src/lib/teardown.ts';
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
  const overload = await inOwnServers((stores, releasers) => measureOverload(stores, parameters, releasers));
  const silent = await inOwnServers((stores, releasers) =>
    measureBesideSilent(stores, parameters, releasers),
  );
  return report(overload, silent, parameters, describeMachine({ wrk: true }));
});

async function inOwnServers<T>(
  measure: (stores: Awaited<ReturnType<typeof startStoreServers>>, releasers: Releasers) => Promise<T>,
): Promise<T> {
  const releasers = new Releasers((error) => note(`an orderly end failed: ${error}`));
  try {
    return await measure(await startStoreServers(releasers), releasers);
  } finally {
    await releasers.release();
  }
}
