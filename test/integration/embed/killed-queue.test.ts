/** A program with an embedded shop in its data folder is killed while it gives places and makes offers, and opens the shop again. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import type { BuyersPlace } from '../../../src/index.ts';
import { PGLITE_FLAGS } from '../../support/nodes/build.ts';
import { QUEUE } from '../../support/shop/queue.ts';

const ENTRY = new URL('../../../dist/index.js', import.meta.url).href;
/** Units: one is bought, two are offered when the program tells so, and the others come just before it is killed. */
const STOCK = 3;
const TOP_UP = 5;
const FIRST = ['ann', 'bob', 'cy'];
/** Places that the program has told of when it is killed. */
const TOLD = 12;

const BEGIN = `
  import { open } from '${ENTRY}';
  const shop = await open({ dataDir: 'data' });
  const saleId = 'web';
  const say = (line) => process.stdout.write(JSON.stringify(line) + '\\n');
  const again = async (ask, isRight) => {
    for (;;) {
      const answer = await ask();
      if (isRight(answer)) return answer;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const isPlace = ({ code }) => code === 'place';
  const comes = (buyerId) => again(() => shop.places.join({ saleId, buyerId }), isPlace);
  const place = (buyerId) => again(() => shop.places.show({ saleId, buyerId }), isPlace);
  const offered = (buyerId) => again(() => place(buyerId), ({ state }) => state === 'offered');
  const accept = async (buyerId) => {
    const { offer } = await offered(buyerId);
    return again(() => shop.places.accept({ buyerId, offer }), ({ code }) => code !== 'unknown');
  };`;

const KILLED = `${BEGIN}
  await shop.sales.create({ id: saleId, stock: ${STOCK}, ...${JSON.stringify(QUEUE)} });
  for (const buyerId of ${JSON.stringify(FIRST)}) await comes(buyerId);
  for (const buyerId of ${JSON.stringify(FIRST)}) await offered(buyerId);
  await accept('ann');
  for (const buyerId of ${JSON.stringify(FIRST)}) say({ buyerId, place: await place(buyerId) });
  void shop.sales.change(saleId, { action: 'top-up', units: ${TOP_UP} });
  await again(() => shop.sales.ledger(saleId), ({ length }) => length > 1);
  for (let i = 0; ; i++) say({ buyerId: 'late-' + i, place: await comes('late-' + i) });`;

interface Told {
  readonly buyerId: string;
  readonly place: BuyersPlace;
}

async function killedWhenTold(folder: string): Promise<Told[]> {
  writeFileSync(join(folder, 'killed.mjs'), KILLED);
  const program = spawn(process.execPath, [...PGLITE_FLAGS, 'killed.mjs'], {
    cwd: folder,
    env: { PATH: process.env.PATH, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void program.kill('SIGKILL'));
  const ended = once(program, 'exit');
  const told: Told[] = [];
  for await (const line of createInterface(program.stdout)) {
    told.push(JSON.parse(line));
    if (told.length >= TOLD) program.kill('SIGKILL');
  }
  expect(await ended).toEqual([null, 'SIGKILL']);
  return told;
}

test('places keep their numbers, offers stay or are made again, and no unit is lost', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'stockade-killed-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const told = await killedWhenTold(folder);
  const names = told.map(({ buyerId }) => buyerId);
  const [bob, next] = ['bob', `late-${TOP_UP}`];
  const lucky = names.slice(FIRST.length, FIRST.length + TOP_UP);
  writeFileSync(
    join(folder, 'again.mjs'),
    `${BEGIN}
    const places = [];
    for (const buyerId of ${JSON.stringify(lucky)}) await offered(buyerId);
    for (const buyerId of ${JSON.stringify(names)}) places.push({ buyerId, place: await place(buyerId) });
    const accepted = await accept('cy');
    await shop.places.leave({ saleId, buyerId: '${bob}' });
    const { number } = await offered('${next}');
    const { number: newest } = await comes('newcomer');
    const { ok, findings } = await shop.sales.verify(saleId);
    say({ places, accepted, number, newest, ok, findings });
    await shop.close();`,
  );
  const { stdout } = await promisify(execFile)(process.execPath, [...PGLITE_FLAGS, 'again.mjs'], {
    cwd: folder,
    env: { PATH: process.env.PATH, TMPDIR: folder },
    timeout: 120_000,
  });
  const now: { places: Told[]; newest: number } & Record<string, unknown> = JSON.parse(stdout);

  expect(now.places.map(({ place }) => place.number)).toEqual(told.map(({ place }) => place.number));
  // What was told of an order holds, and the others have their turn in the order of places.
  expect(now.places.slice(0, FIRST.length)).toEqual(told.slice(0, FIRST.length));
  const states = now.places.map(({ place }) => place.state);
  expect(states.slice(0, FIRST.length + TOP_UP)).toEqual([
    'bought',
    ...Array(STOCK - 1 + TOP_UP).fill('offered'),
  ]);
  for (const state of states.slice(FIRST.length + TOP_UP)) expect(['waiting', 'hopeless']).toContain(state);
  const { offer } = told.find(({ buyerId }) => buyerId === 'cy')!.place;
  expect(now).toMatchObject({
    accepted: { code: 'committed', orderId: offer!.orderId },
    number: told.find(({ buyerId }) => buyerId === next)!.place.number,
    ...{ ok: true, findings: [] },
  });
  // One more place may have been given than was told.
  expect(now.newest - told.at(-1)!.place.number).toBeGreaterThan(0);
});
