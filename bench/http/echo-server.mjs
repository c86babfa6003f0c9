// The reference of the HTTP bench: uWebSockets.js and nothing else. It reads the path, the headers and the body of an order, as
// a server must that answers it, and sends the body back.
//
// node echo-server.mjs <threads> <port>: all threads listen on one port, as a node's workers do. JavaScript, so that it
// runs as it stands, with no loader in the process that is measured.

import * as uWS from 'uWebSockets.js';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

if (isMainThread) await startThreads(...process.argv.slice(2).map(Number));
else serve(workerData);

async function startThreads(count, port) {
  for (let i = 0; i < count; i++) {
    const thread = new Worker(new URL(import.meta.url), { workerData: port });
    await new Promise((resolve, reject) => thread.once('message', resolve).once('error', reject));
  }
  console.log(JSON.stringify({ ready: true }));
}

function serve(port) {
  const app = uWS.App().post('/v1/sales/:saleId/orders', echo);
  app.listen('127.0.0.1', port, (socket) => {
    if (!socket) throw new Error(`can't listen on port ${port}`);
    parentPort.postMessage('listening');
  });
}

function echo(response, request) {
  const order = [request.getParameter(0), request.getHeader('x-buyer-id'), request.getHeader('content-type')];
  order.push(request.getHeader('idempotency-key'), request.getHeader('prefer'));
  if (!order[0] || !order[1]) return response.close();
  let parts;
  let aborted = false;
  response.onAborted(() => {
    aborted = true;
  });
  response.onData((chunk, isLast) => {
    // The chunk is sent within this call, before uWebSockets.js reuses its memory; only parts must be copied.
    if (isLast && !parts) return response.end(chunk);
    parts ??= [];
    parts.push(Buffer.from(chunk.slice(0)));
    if (isLast && !aborted) response.cork(() => response.end(Buffer.concat(parts)));
  });
}
