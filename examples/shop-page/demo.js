/**
 * Shows the queue: starts a node and the shop's page, creates a sale that opens in half a minute, and sends a crowd. The visitor
 * who opens the page meanwhile gets a place among them. Everything ends with Ctrl+C, and nothing is left behind.
 */
import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { BuyerClient, OperatorClient } from '../../dist/client/index.js';
import { createShop, sessionToken } from './server.js';

const CROWD = 150;
const STOCK = 120;
const OPENS_IN_MS = 30_000;
/** The crowd comes during this time, half of it before the sale opens. */
const ARRIVAL_MS = 60_000;
const OFFER_SECONDS = 60;
/** How long a visitor of the crowd thinks about an offer, at most. */
const THINKS_MS = 20_000;
/** Of those who have an offer, so many give it back. */
const DECLINES = 0.2;

const shop = {
  saleId: 'tickets',
  jwtSecret: randomBytes(32).toString('hex'),
  opsToken: randomBytes(18).toString('base64url'),
  client: new URL('../../dist/client/', import.meta.url),
};
const page = createShop(shop).listen(Number(process.env.PORT ?? 3_000), '127.0.0.1');
await once(page, 'listening');
const address = `http://localhost:${page.address().port}`;
const dataDir = await mkdtemp(join(tmpdir(), 'stockade-queue-'));
const node = spawn(
  process.execPath,
  [fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url)), 'serve', '--json'],
  {
    env: {
      ...{ PATH: process.env.PATH, HOME: process.env.HOME, LOG_LEVEL: 'warn' },
      ...{
        HOST: '127.0.0.1',
        PORT: '0',
        OPS_PORT: '0',
        OPS_TOKEN: shop.opsToken,
        DATA_DIR: join(dataDir, 'data'),
      },
      ...{ BUYER_AUTH: 'jwt', JWT_SECRET: shop.jwtSecret, CORS_ORIGINS: address },
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  },
);
const ended = once(node, 'exit');
ended.then(async () => {
  await rm(dataDir, { recursive: true, force: true });
  process.exit();
});
// Ctrl+C in a terminal reaches the node too: then this does nothing more.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => node.kill('SIGTERM'));

for await (const line of createInterface({ input: node.stdout })) {
  const { ready, publicUrl, opsUrl } = JSON.parse(line);
  if (!ready) continue;
  Object.assign(shop, { shopUrl: publicUrl, opsUrl });
  break;
}
node.stdout.resume();
if (!shop.shopUrl) throw new Error('the node has ended before it was ready');

const operator = new OperatorClient({ url: shop.opsUrl, token: shop.opsToken });
const created = await operator.createSale({
  ...{ id: shop.saleId, title: 'An evening in the front row', stock: STOCK, perBuyerLimit: 2 },
  ...{ priceMinor: 4_900, currency: 'EUR', payWithinSeconds: 600 },
  startsAt: new Date(Date.now() + OPENS_IN_MS).toISOString(),
  ...{ queue: 'fifo', offerSeconds: OFFER_SECONDS, presenceSeconds: 30 },
});
if (created.code !== 'done') throw new Error(`the sale was not created: ${JSON.stringify(created)}`);
console.log(
  `Open ${address} now, and get a place. The sale opens in ${OPENS_IN_MS / 1_000} s. Ctrl+C ends it.`,
);
const tally = { places: 0, bought: 0, 'given back': 0 };
const telling = setInterval(() => console.log(tally), 10_000);
await Promise.all(Array.from({ length: CROWD }, () => visitor()));
clearInterval(telling);
console.log(tally, 'The crowd is done. The page goes on until Ctrl+C.');

/** One of the crowd: comes, waits, and buys or gives back. */
async function visitor() {
  const authorization = `Bearer ${sessionToken(shop.jwtSecret, randomUUID())}`;
  const client = new BuyerClient({ url: shop.shopUrl, headers: () => ({ authorization }) });
  await pause(Math.random() * ARRIVAL_MS);
  const taken = await client.takePlace(shop.saleId, { quantity: 1 + Math.floor(Math.random() * 2) });
  if (taken.code !== 'found') return;
  tally.places++;
  for await (const { place } of client.followPlace(shop.saleId, taken.place.placeToken)) {
    if (place?.state !== 'offered') continue;
    await pause(Math.random() * THINKS_MS);
    if (Math.random() < DECLINES) {
      await client.leave(shop.saleId);
      tally['given back']++;
    } else {
      const { token, quantity } = place.offer;
      const { code } = await client.purchase({ saleId: shop.saleId, quantity, purchaseToken: token });
      if (code === 'committed') tally.bought++;
    }
    return;
  }
}
