/** Order ids: how many per second a row gives to all clients together. */
import type { NamingRow } from '../../catalogue/parts/contract.ts';
import { closedLoop, total } from './closed-loop.ts';
import type { NamingFigures } from './figures.ts';
import type { CatalogueParameters } from './options.ts';
import type { Stall } from './store-house.ts';

const NODE = 1;
/** A request for an id does not come from a socket, so the event loop needs to turn only at times. */
const IDS_PER_TURN = 100;

export async function measureNaming(
  { id, title, open }: NamingRow,
  { stores, calls }: Stall,
  parameters: CatalogueParameters,
): Promise<NamingFigures> {
  const names = await open(stores, NODE);
  try {
    const callsSince = await calls.start(undefined);
    const load = { ...parameters, callsPerTurn: IDS_PER_TURN };
    const { answers, allAnswers, seconds, p50Ms, p99Ms } = await closedLoop(load, async () => {
      await names.next();
      return 'id';
    });
    const { redis } = await callsSince();
    const idsPerSecond = total(answers) / seconds;
    return { id, title, idsPerSecond, p50Ms, p99Ms, redisCommandsPerId: redis / total(allAnswers) };
  } finally {
    await names.close();
  }
}
