/** A shop inside a Fastify server, which also writes the shop's log. */
import { open } from '@stockade-engine/stockade';
import Fastify from 'fastify';
import { statusOf } from './status.js';

const app = Fastify({ logger: { level: 'warn' } });
const shop = await open({
  redisUrl: process.env.REDIS_URL,
  databaseUrl: process.env.DATABASE_URL,
  logger: app.log,
});
const { sales } = await shop.sales.list();
if (sales.length === 0) await shop.sales.create({ id: 'front-row', stock: 100 });

app.post<{ Params: { saleId: string } }>('/buy/:saleId', async (request, reply) => {
  const outcome = await shop.purchase({
    saleId: request.params.saleId,
    buyerId: String(request.headers['x-buyer-id'] ?? ''),
    key: String(request.headers['idempotency-key'] ?? ''),
  });
  return reply.code(statusOf(outcome)).send(outcome);
});

app.addHook('onClose', () => shop.close());
process.once('SIGTERM', () => app.close());

await app.listen({ port: Number(process.env.PORT ?? 3000) });
console.log('ready', app.server.address());
