// The reference of the latency bench: the least that a server must do so that a purchase is in Postgres when it is answered. It reads
// a request as the echo server of bench:http does, inserts all orders that wait with one statement, and answers 201. While a
// statement is under way, the next orders gather. There is no Redis, no stock and no limit: it sells to everybody.
//
// node inserting-server.mjs <database url> <port>: JavaScript, so that it runs as it stands, with no loader in the process that is
// measured. The table is that of bench:sync.

import * as uWS from 'uWebSockets.js';
import pg from 'pg';

const [databaseUrl, port] = process.argv.slice(2);
const INSERT = {
  name: 'insert',
  text: `INSERT INTO bare_orders (order_id, sale_id, buyer_id, quantity, one_per_buyer)
    SELECT o.id, o.sale, o.buyer, 1, true FROM unnest($1::bigint[], $2::text[], $3::text[]) AS o (id, sale, buyer)`,
};

const postgres = new pg.Client(databaseUrl);
await postgres.connect();
let lastId = 0;
let waiting = [];
let isInserting = false;

function purchase(response, request) {
  const order = { id: ++lastId, saleId: request.getParameter(0), buyerId: request.getHeader('x-buyer-id') };
  if (!order.buyerId) return response.close();
  order.headers = ['content-type', 'idempotency-key', 'prefer'].map((name) => request.getHeader(name));
  response.onAborted(() => {
    order.isGone = true;
  });
  response.onData((_chunk, isLast) => {
    if (!isLast) return;
    waiting.push({ order, response });
    // All requests that have arrived by now come into the same statement.
    if (!isInserting && waiting.length === 1) setImmediate(insertWaiting);
  });
}

async function insertWaiting() {
  isInserting = true;
  while (waiting.length > 0) {
    const batch = waiting;
    waiting = [];
    const column = (member) => `{${batch.map(({ order }) => order[member]).join()}}`;
    await postgres.query({ ...INSERT, values: [column('id'), column('saleId'), column('buyerId')] });
    for (const { order, response } of batch) if (!order.isGone) answer(order, response);
  }
  isInserting = false;
}

function answer({ id }, response) {
  response.cork(() => {
    response.writeStatus('201 Created').writeHeader('content-type', 'application/json');
    response.end(`{"orderId":"${id}","status":"committed"}`);
  });
}

uWS
  .App()
  .post('/v1/sales/:saleId/orders', purchase)
  .listen('127.0.0.1', Number(port), (socket) => {
    if (!socket) throw new Error(`can't listen on port ${port}`);
    console.log(JSON.stringify({ ready: true }));
  });
