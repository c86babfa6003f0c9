// Many who listen to a sale, in a process of their own: node listening-program.mjs PORT SALE COUNT. It answers each message with what they have seen.
import { connect } from 'node:net';

const [port, saleId, count] = process.argv.slice(2);
/** Connections that are being opened at a time: a listener's queue in the kernel is short. */
const OPENING = 200;
const REQUEST = `GET /v1/sales/${saleId}/events HTTP/1.1\r\nhost: localhost\r\n\r\n`;

/** How many were last told that so many units are left. */
const left = new Map();
const seen = { events: 0, bytes: 0, ended: 0, closed: 0, refused: 0 };

function listen(begun) {
  let last;
  let text = '';
  const socket = connect(Number(port), '127.0.0.1');
  socket.write(REQUEST);
  socket.on('error', () => {});
  socket.on('close', () => {
    seen.closed++;
    begun();
  });
  socket.setEncoding('latin1').on('data', (chunk) => {
    seen.bytes += chunk.length;
    text += chunk;
    const end = text.lastIndexOf('\n\n');
    if (end < 0) return;
    const whole = text.slice(0, end);
    text = text.slice(end);
    if (whole.startsWith('HTTP/1.1 503')) seen.refused++;
    for (const [, remaining] of whole.matchAll(/"remaining":(\d+)/g)) {
      seen.events++;
      left.set(last, (left.get(last) ?? 1) - 1);
      left.set(remaining, (left.get(remaining) ?? 0) + 1);
      last = remaining;
      begun();
    }
    if (whole.includes('event: end')) seen.ended++;
  });
}

let opened = 0;
function openNext() {
  if (opened === Number(count)) return;
  opened++;
  let isFirst = true;
  listen(() => {
    if (isFirst) openNext();
    isFirst = false;
  });
}
for (let i = 0; i < OPENING; i++) openNext();

process.on('message', () => {
  const told = Object.fromEntries([...left].filter(([of, n]) => of !== undefined && n > 0));
  process.send({ ...seen, left: told });
});
process.on('disconnect', () => process.exit());
