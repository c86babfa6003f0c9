/**
 * Serves HTTP with Node's own server, where no binary of uWebSockets.js loads. Its parser is strict: it answers an ambiguous
 * head with `400` before a route is looked for. Requests that it lets through are checked again (framing.ts).
 *
 * Node accepts any number of requests on a connection before the first is answered. Here the second one closes the
 * connection.
 */
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Port } from '../exchange.ts';
import type { HttpServer, ListenOptions, Method, Serve } from '../http-server.ts';
import { cannotListen, type Listener, listenerOf } from '../listener.ts';
import { problem } from '../replies/problem.ts';
import { NodeConnection } from './node-connection.ts';
import { NodeExchange } from './node-exchange.ts';
import { NodeRequest } from './node-request.ts';
import { RouteTable } from './route-table.ts';

export const openNodeServer = (port: Port) => new NodeServer(port);

/** How long a client may take to send a request, and how long it may be silent. About as with uWebSockets.js. */
const CLIENT_TIMEOUT_MS = 10_000;
const CHECKED_EVERY_MS = 1_000;
/** The limit of uWebSockets.js, set by the same variable. */
const MAX_HEAD_BYTES = Number(process.env.UWS_HTTP_MAX_HEADERS_SIZE) || 4_096;

const OPTIONS: ServerOptions = {
  maxHeaderSize: MAX_HEAD_BYTES,
  headersTimeout: CLIENT_TIMEOUT_MS,
  requestTimeout: CLIENT_TIMEOUT_MS,
  keepAliveTimeout: CLIENT_TIMEOUT_MS,
  connectionsCheckingInterval: CHECKED_EVERY_MS,
  // `#request` checks this header. Node would answer by itself, even in the middle of a pipeline.
  requireHostHeader: false,
};

/** A whole answer as text, for requests that Node can't parse: Node gives no response object for them. */
const bare = (line: string) => `HTTP/1.1 ${line}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`;
const TOO_LARGE = bare('431 Request Header Fields Too Large');
const OTHER_VERSION = bare('505 HTTP Version Not Supported');
const NOT_HTTP = written('this is not a valid HTTP/1.1 request');
const NO_HOST = written('Host is missing');
const NO_PROXY = written('CONNECT is not supported: this is no proxy');

class NodeServer implements HttpServer {
  readonly hasCheapHeaderScan = true;
  readonly #server: Server = createServer(OPTIONS);
  readonly #port: Port;
  readonly #routes = new RouteTable();
  readonly #connections = new WeakMap<Socket, NodeConnection>();

  constructor(port: Port) {
    this.#port = port;
    const server = this.#server;
    server.timeout = CLIENT_TIMEOUT_MS;
    // No limit: Node would silently drop headers above a number, while it refuses a head above its size.
    server.maxHeadersCount = 0;
    server.on('connection', (socket) => this.#opened(socket));
    server.on('timeout', (socket) => this.#silent(socket));
    server.on('request', (message, response) => this.#request(message, response));
    server.on('checkExpectation', (message, response) => this.#request(message, response));
    server.on('checkContinue', (message, response) => this.#request(message, response, true));
    server.on('connect', ({ socket }) => this.#refuse(socket, NO_PROXY));
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) =>
      this.#unreadable(error, socket),
    );
  }

  on(method: Method | 'any', pattern: string, serve: Serve): void {
    this.#routes.add(method, pattern, serve);
  }

  listen({ host, port, isShared }: ListenOptions): Promise<Listener> {
    const server = this.#server;
    return new Promise((resolve, reject) => {
      server.once('error', (error) => reject(cannotListen(host, port, error.message, error)));
      server.listen({ host, port, exclusive: true, ...(isShared && { reusePort: true }) }, () => {
        const listening = {
          port: (server.address() as AddressInfo).port,
          // `close` of http.Server would also close idle connections, on which a request may be on its way.
          stopListening: () => void NetServer.prototype.close.call(server),
          closeConnections: () => server.close().closeAllConnections(),
        };
        resolve(listenerOf(listening, this.#port.traffic));
      });
    });
  }

  #opened(socket: Socket): void {
    const connection = new NodeConnection(socket);
    const { connections } = this.#port.traffic;
    this.#connections.set(socket, connection);
    // Node takes its own listener away when it reads a CONNECT. Without any listener, a reset would end the process.
    socket.on('error', () => {});
    socket.once('close', () => {
      connections.closed();
      connection.aborted();
    });
    if (!connections.opened(() => connection.peer)) connection.close();
  }

  #request(message: IncomingMessage, response: ServerResponse, mustContinue = false): void {
    const connection = this.#connections.get(message.socket)!;
    // Node goes on parsing what it read together with a request that has closed the connection.
    if (connection.isClosed) return;
    if (connection.underWay) connection.close();
    else if (message.httpVersion !== '1.1') connection.refuse(OTHER_VERSION);
    else if (message.headers.host === undefined) connection.refuse(NO_HOST);
    else {
      if (mustContinue) response.writeContinue();
      this.#serve(new NodeExchange(connection, message, response, this.#port), message);
    }
  }

  #serve(exchange: NodeExchange, message: IncomingMessage): void {
    const request = new NodeRequest(message);
    const route = this.#routes.find(request.segments);
    request.matched(route);
    const serve = route.serves.get(message.method!) ?? route.serves.get('any')!;
    serve(exchange, request);
  }

  #unreadable({ code }: NodeJS.ErrnoException, socket: Socket): void {
    if (!code?.startsWith('HPE_')) socket.destroy();
    else this.#refuse(socket, code === 'HPE_HEADER_OVERFLOW' ? TOO_LARGE : NOT_HTTP);
  }

  /** If a request is under way, only closes the connection: the client would take this for the answer to that request. */
  #refuse(socket: Socket, answer: string): void {
    const connection = this.#connections.get(socket);
    if (connection?.underWay?.isLastAnswered) return;
    if (!connection || connection.underWay) socket.destroy();
    else connection.refuse(answer);
  }

  /** No byte has come or gone for `CLIENT_TIMEOUT_MS`. */
  #silent(socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (!connection?.underWay?.isBeingHandled) socket.destroy();
  }
}

function written(detail: string): string {
  const { head, body } = problem('invalid_request', { detail });
  return `HTTP/1.1 ${head.text}\r\nconnection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
