// Buyers who listen to their places, in a process of their own: node listening-places.mjs PORT SALE COUNT. It answers each message with
// what they have seen so far. It only counts, because it shares the machine with the node that is measured.
import { connect } from 'node:net';

const [port, saleId, count] = process.argv.slice(2);
/** Connections that are being opened at a time: a listener's queue in the kernel is short. */
const OPENING = 100;
const EVENT = 'event: place';

const seen = { listening: 0, refused: 0, events: 0, bytes: 0 };
let opened = 0;

function openNext() {
  if (opened === Number(count)) return;
  opened++;
  const socket = connect(Number(port), '127.0.0.1');
  socket.write(
    `GET /v1/sales/${saleId}/place/events HTTP/1.1\r\nhost: localhost\r\nx-buyer-id: listener-${opened}\r\n\r\n`,
  );
  let isFirst = true;
  socket.setEncoding('latin1').on('data', (chunk) => {
    seen.bytes += chunk.length;
    if (isFirst) {
      isFirst = false;
      if (chunk.startsWith('HTTP/1.1 200')) seen.listening++;
      else seen.refused++;
      openNext();
    }
    // An event comes in one piece: it is short.
    for (let at = chunk.indexOf(EVENT); at >= 0; at = chunk.indexOf(EVENT, at + EVENT.length)) seen.events++;
  });
  socket.on('error', () => {});
}
for (let i = 0; i < OPENING; i++) openNext();

process.on('message', () => process.send(seen));
process.on('disconnect', () => process.exit());
