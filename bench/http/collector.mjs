// A collector of traces that reads what it is sent and keeps nothing: a node that traces needs somewhere to send its spans.
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
});
server.listen(0, '127.0.0.1', () =>
  console.log(JSON.stringify({ ready: true, port: server.address().port })),
);
