/** A process that holds connections and sends almost nothing on them, or too much at once, until it is told to end. */
import { connect, type Socket } from 'node:net';

export interface SilentOrder {
  readonly url: string;
  readonly saleId: string;
  readonly idle: number;
  readonly slow: number;
  readonly pipelining: number;
}

/** A node closes a connection that is silent for some ten seconds. */
const PING_EVERY_MS = 7_000;
const BYTE_EVERY_MS = 2_000;
/** Half a megabyte, which uWebSockets.js reads at once. */
const PIPELINE = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(19_000);
const PIPELINE_EVERY_MS = 1_000;
/** Connections opened at the same time. */
const AT_ONCE = 100;

process.once('message', async ({ url, saleId, idle, slow, pipelining }: SilentOrder) => {
  const { hostname, port } = new URL(url);
  const head = `POST /v1/sales/${saleId}/orders HTTP/1.1\r\nHost: localhost\r\n`;
  const kinds = [
    // A request whose last header never comes.
    { first: head, byte: 'X-', everyMs: BYTE_EVERY_MS },
    // A body whose last byte never comes.
    { first: `${head}Content-Length: 4000\r\n\r\n`, byte: ' ', everyMs: BYTE_EVERY_MS },
    // A client that does not read.
    {
      first: '',
      byte: `${head}X-Buyer-Id: deaf\r\nContent-Length: 0\r\n\r\n`,
      everyMs: BYTE_EVERY_MS,
      deaf: true,
    },
  ];
  const ping = { first: '', byte: 'GET /idle HTTP/1.1\r\nHost: localhost\r\n\r\n', everyMs: PING_EVERY_MS };
  const pipeline = { first: '', byte: PIPELINE, everyMs: PIPELINE_EVERY_MS };
  const hold = (kind: Kind) => holdOne(Number(port), hostname, kind);
  const wanted: Kind[] = [
    ...Array.from({ length: slow }, (_, i) => kinds[i % kinds.length]!),
    ...Array.from({ length: idle }, () => ping),
    ...Array.from({ length: pipelining }, () => pipeline),
  ];
  for (let i = 0; i < wanted.length; i += AT_ONCE) await Promise.all(wanted.slice(i, i + AT_ONCE).map(hold));
  process.send!({ kind: 'ready' });
});
process.on('disconnect', () => process.exit());

interface Kind {
  /** Sent once connected. */
  readonly first: string;
  /** Sent repeatedly. */
  readonly byte: string;
  readonly everyMs: number;
  readonly deaf?: boolean;
}

/** Holds a connection, and opens another whenever the node closes it. Resolves when the first is open. */
function holdOne(port: number, host: string, kind: Kind): Promise<void> {
  return new Promise((resolve) => {
    const again = () => {
      const socket = connect(port, host, () => {
        resolve();
        begin(socket, kind);
      });
      socket.on('error', () => {});
      socket.on('close', () => setTimeout(again, Math.random() * kind.everyMs));
    };
    again();
  });
}

function begin(socket: Socket, { first, byte, everyMs, deaf }: Kind): void {
  if (deaf) socket.pause();
  else socket.resume();
  if (first !== '') socket.write(first);
  // Spread out, so that not all send at the same moment.
  const late = setTimeout(() => {
    const timer = setInterval(() => socket.write(byte), everyMs);
    socket.write(byte);
    socket.once('close', () => clearInterval(timer));
  }, Math.random() * everyMs);
  socket.once('close', () => clearTimeout(late));
}
