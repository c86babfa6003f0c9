/** The run: in each round every row of the catalogue, one after the other, in empty stores. */
import { NAMING_ROWS, SELLING_ROWS } from '../../catalogue/catalogue.ts';
import type { Row } from '../../catalogue/parts/contract.ts';
import { note } from '../../src/cli/terminal/output.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { count } from '../support/figures.ts';
import { closedLoop, total } from './closed-loop.ts';
import type { NamingFigures, Round, RowFigures } from './figures.ts';
import { measureNaming } from './naming.ts';
import type { CatalogueParameters } from './options.ts';
import { measureRow } from './selling.ts';
import { type Stall, StoreHouse } from './store-house.ts';

export async function runRounds(parameters: CatalogueParameters): Promise<Round[]> {
  const teardown = noisyTeardown();
  try {
    note('Starting Redis and Postgres');
    const house = await StoreHouse.open(teardown);
    const rounds: Round[] = [];
    for (let number = 1; number <= parameters.rounds; number++) {
      note(`round ${number} of ${parameters.rounds}`);
      rounds.push(await runRound(house, parameters));
    }
    return rounds;
  } finally {
    await teardown.release();
  }
}

async function runRound(house: StoreHouse, parameters: CatalogueParameters): Promise<Round> {
  const alone = await closedLoop(parameters, async () => 'answered');
  const clientsAlone = total(alone.answers) / alone.seconds;
  note(`the clients alone: ${count(clientsAlone)} requests/s`);
  const rows: RowFigures[] = [];
  for (const row of SELLING_ROWS) {
    const figures = await inStall(house, row, (stall) => measureRow(row, stall, parameters));
    const { selling, crowd } = figures;
    note(
      `${row.id}: ${count(selling.ordersPerSecond)} orders/s, then ${count(crowd.requestsPerSecond)} requests/s; ` +
        `${count(crowd.sold)} sold of ${count(parameters.stock)}`,
    );
    rows.push(figures);
  }
  const naming: NamingFigures[] = [];
  for (const row of NAMING_ROWS) {
    naming.push(await inStall(house, row, (stall) => measureNaming(row, stall, parameters)));
  }
  return { clientsAlone, rows, naming };
}

async function inStall<T>(house: StoreHouse, row: Row, work: (stall: Stall) => Promise<T>): Promise<T> {
  const teardown = noisyTeardown();
  try {
    return await work(await house.stall(row, teardown));
  } finally {
    await teardown.release();
  }
}

function noisyTeardown(): Teardown {
  return new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
}
