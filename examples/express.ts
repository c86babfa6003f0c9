/** A shop inside an Express server. The buyer's id comes from a header here; take it from your session. */
import { open } from '@stockade-engine/stockade';
import express from 'express';
import { statusOf } from './status.js';

const shop = await open({ redisUrl: process.env.REDIS_URL, databaseUrl: process.env.DATABASE_URL });
const { sales } = await shop.sales.list();
if (sales.length === 0) await shop.sales.create({ id: 'front-row', stock: 100 });

const app = express();

app.post('/buy/:saleId', async (request, response) => {
  const outcome = await shop.purchase({
    saleId: request.params.saleId,
    buyerId: request.get('x-buyer-id') ?? '',
    key: request.get('idempotency-key') ?? '',
  });
  response.status(statusOf(outcome)).json(outcome);
});

const server = app.listen(Number(process.env.PORT ?? 3000), (error) => {
  // Express calls this also if the port is in use.
  if (error) throw error;
  console.log('ready', server.address());
});

process.once('SIGTERM', async () => {
  server.close();
  await shop.close();
});
