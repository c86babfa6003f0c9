/**
 * The shop in the demo of the queue: it serves the page of examples/shop-page to browsers on this machine, with a card about the
 * crowd, and does what that example's own server does: it says who a buyer is, and reports payments.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { OperatorClient } from '../../../client/index.ts';
import { signBuyerToken } from '../../command/buyer-token.ts';
import type { Standing } from './standing.ts';

const HOST = '127.0.0.1';
const TOKEN_S = 600;
const TYPES: Readonly<Record<string, string>> = { html: 'text/html', css: 'text/css', js: 'text/javascript' };
const BUYER = /(?:^|; )stockade-demo=([\w-]{36})/;

export interface Folders {
  /** The page of the shop (examples/shop-page/page). */
  readonly shop: URL;
  /** What the demo adds to it. */
  readonly own: URL;
  /** The client, compiled: its first file. */
  readonly client: URL;
}

/** The build copies the page of the example here. */
const FOLDERS: Folders = {
  shop: new URL('./shop-page/', import.meta.url),
  own: new URL('./page/', import.meta.url),
  client: new URL('../../../client/index.js', import.meta.url),
};

/** What the page is about. Known only after the server listens, because the node has to know the page's origin. */
export interface Shown {
  readonly shopUrl: string;
  readonly saleId: string;
  readonly operator: OperatorClient;
  standing(): Standing | undefined;
}

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export class DemoPage {
  readonly #server: Server;
  readonly #folders: Folders;
  readonly #secret: string;
  /** The buyers whose browsers it has given a cookie. Any other cookie could name any buyer of the shop. */
  readonly #buyers = new Set<string>();
  #shown: Shown | undefined;
  #wasOpened = false;

  private constructor(secret: string, folders: Folders) {
    [this.#secret, this.#folders] = [secret, folders];
    this.#server = createServer((request, response) => {
      this.#answer(request).then(
        ({ status = 200, headers, body }) => response.writeHead(status, headers).end(body),
        () => response.writeHead(500).end(),
      );
    });
  }

  /** @param secret signs the tokens of buyers */
  static async open(secret: string, folders = FOLDERS): Promise<DemoPage> {
    const page = new DemoPage(secret, folders);
    page.#server.listen(0, HOST);
    await once(page.#server, 'listening');
    return page;
  }

  get origin(): string {
    return `http://${HOST}:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Whether a browser has asked for it. */
  get wasOpened(): boolean {
    return this.#wasOpened;
  }

  show(shown: Shown): void {
    this.#shown = shown;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #answer(request: IncomingMessage): Promise<Answer> {
    const { pathname } = new URL(request.url!, this.origin);
    // A page elsewhere, whose host name was made to mean this machine, must learn nothing.
    if (!this.#shown || request.headers.host !== new URL(this.origin).host) return { status: 404 };
    const { shopUrl, saleId, standing } = this.#shown;
    const named = BUYER.exec(request.headers.cookie ?? '')?.[1];
    const buyer = named && this.#buyers.has(named) ? named : undefined;
    if (request.method === 'POST') {
      if (pathname === '/session') return this.#session(buyer);
      const orderId = /^\/orders\/(\d+)\/pay$/.exec(pathname)?.[1];
      return orderId && buyer ? pay(this.#shown, orderId, buyer) : { status: 404 };
    }
    if (pathname === '/config') return json({ shopUrl, saleId });
    if (pathname === '/crowd') return json(standing() ?? {});
    return this.#file(pathname);
  }

  #session(known: string | undefined): Answer {
    const buyer = known ?? randomUUID();
    this.#buyers.add(buyer);
    const token = signBuyerToken({ secret: this.#secret }, buyer, TOKEN_S);
    return json(
      { token, buyerId: buyer, seconds: TOKEN_S, isNew: known === undefined },
      { 'set-cookie': `stockade-demo=${buyer}; HttpOnly; SameSite=Strict; Path=/` },
    );
  }

  async #file(pathname: string): Promise<Answer> {
    const { shop, own, client } = this.#folders;
    const isPage = pathname === '/';
    const [, ofClient, name] = /^\/(client\/(?:generated\/)?)?([\w-]+\.(?:css|js))$/.exec(pathname) ?? [];
    if (!isPage && !name) return { status: 404 };
    const url = isPage
      ? new URL('index.html', shop)
      : ofClient
        ? new URL(pathname.slice('/client/'.length), client)
        : new URL(name!, name!.startsWith('crowd.') ? own : shop);
    const body = await readFile(url).catch(() => undefined);
    if (!body) return { status: 404 };
    this.#wasOpened ||= isPage;
    const headers = {
      'content-type': `${TYPES[url.pathname.split('.').at(-1)!]}; charset=utf-8`,
      'content-security-policy': `default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' ${this.#shown!.shopUrl}; img-src data:`,
      'cache-control': 'no-store',
    };
    return { headers, body: isPage ? withCrowd(body.toString()) : body };
  }
}

/** The shop's page, and the card about the crowd in it. */
function withCrowd(page: string): string {
  const added =
    '<link rel="stylesheet" href="crowd.css"><script type="module" src="crowd.js"></script></head>';
  return page.replace('</head>', added);
}

/** Reports a payment at the ops port, for the buyer's own order in this sale only. */
async function pay({ operator, saleId }: Shown, orderId: string, buyer: string): Promise<Answer> {
  const found = await operator.order(orderId);
  if (found.code !== 'done') return { status: 404 };
  if (found.order.buyerId !== buyer || found.order.saleId !== saleId) return { status: 404 };
  const paid = await operator.pay(orderId, 'card');
  return paid.code === 'done' ? json(paid.order) : { ...json({ code: paid.code }), status: 409 };
}

function json(value: object, headers: Readonly<Record<string, string>> = {}): Answer {
  return {
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
    body: JSON.stringify(value),
  };
}
