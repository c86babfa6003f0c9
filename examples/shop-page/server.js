/**
 * The shop's own server. It serves the page, and does the two things that a page must not do by itself: it says who the buyer
 * is, and it reports payments.
 *
 * A real shop signs its buyers in, and hears of payments from its payment provider. Here each browser gets a random name, and
 * the button "Pay" is the payment.
 */
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const TYPES = { html: 'text/html', css: 'text/css', js: 'text/javascript' };
const TOKEN_S = 600;
const ORDER_ID = /^\/orders\/(\d+)\/pay$/;

/**
 * @param {{ shopUrl: string, opsUrl: string, opsToken: string, jwtSecret: string, saleId: string, client: URL }} shop
 *   `shopUrl` and `opsUrl` are the ports of a Stockade node, `client` is the folder of its typed client. Read at each request
 */
export function createShop(shop) {
  return createServer((request, response) => {
    answer(shop, request).then(
      ({ status = 200, headers, body }) => response.writeHead(status, headers).end(body),
      (error) => {
        console.error(error);
        response.writeHead(500).end();
      },
    );
  });
}

async function answer(shop, request) {
  const { pathname } = new URL(request.url, 'http://localhost');
  const buyerId = buyerIn(request.headers.cookie ?? '', shop);
  if (request.method === 'POST') {
    if (pathname === '/session') return session(shop, buyerId);
    const orderId = ORDER_ID.exec(pathname)?.[1];
    if (orderId && buyerId) return pay(shop, orderId, buyerId);
    return { status: 404 };
  }
  if (pathname === '/config') return json({ shopUrl: shop.shopUrl, saleId: shop.saleId });
  return file(shop, pathname);
}

/** Who the buyer is, as a token that the node checks (BUYER_AUTH=jwt). */
export function sessionToken(jwtSecret, buyerId) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = { sub: buyerId, exp: Math.floor(Date.now() / 1_000) + TOKEN_S };
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`;
  const signature = createHmac('sha256', jwtSecret).update(signed).digest('base64url');
  return `${signed}.${signature}`;
}

/** Only this server can have written the cookie: otherwise anybody who knows a buyer's id could be that buyer. */
function buyerIn(cookies, { jwtSecret }) {
  const [, buyerId, mac] = /(?:^|; )buyer=([\w-]{36})\.([\w-]{43})(?:;|$)/.exec(cookies) ?? [];
  if (buyerId === undefined) return undefined;
  const isOurs = timingSafeEqual(Buffer.from(mac), Buffer.from(cookieMac(jwtSecret, buyerId)));
  return isOurs ? buyerId : undefined;
}

function cookieMac(jwtSecret, buyerId) {
  return createHmac('sha256', jwtSecret).update(`cookie ${buyerId}`).digest('base64url');
}

function session({ jwtSecret }, known) {
  const buyerId = known ?? randomUUID();
  return json(
    { token: sessionToken(jwtSecret, buyerId), buyerId, seconds: TOKEN_S, isNew: known === undefined },
    {
      'set-cookie': `buyer=${buyerId}.${cookieMac(jwtSecret, buyerId)}; HttpOnly; SameSite=Strict; Path=/; Max-Age=31536000`,
    },
  );
}

/** Reports the payment at the ops port, for the buyer's own order only. @returns the node's answer */
async function pay({ opsUrl, opsToken }, orderId, buyerId) {
  const headers = { authorization: `Bearer ${opsToken}`, 'content-type': 'application/json' };
  const url = `${opsUrl}/v1/orders/${orderId}`;
  const order = await fetch(url, { headers });
  if (!order.ok || (await order.json()).buyerId !== buyerId) return { status: 404 };
  const paid = await fetch(`${url}/pay`, { method: 'POST', headers, body: '{"payType":"card"}' });
  return { status: paid.status, headers: { 'content-type': 'application/json' }, body: await paid.text() };
}

async function file(shop, pathname) {
  const [, ofClient] = /^\/client\/((?:generated\/)?[\w-]+\.js)$/.exec(pathname) ?? [];
  const [, ofPage] = /^\/([\w-]+\.(?:css|js))$/.exec(pathname === '/' ? '' : pathname) ?? [];
  const url = ofClient
    ? new URL(ofClient, shop.client)
    : new URL(`page/${pathname === '/' ? 'index.html' : ofPage}`, import.meta.url);
  const body =
    ofClient || ofPage || pathname === '/' ? await readFile(url).catch(() => undefined) : undefined;
  if (!body) return { status: 404 };
  const type = `${TYPES[url.pathname.split('.').at(-1)]}; charset=utf-8`;
  const policy = `default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' ${shop.shopUrl}; img-src data:`;
  return { headers: { 'content-type': type, 'content-security-policy': policy }, body };
}

function json(value, headers = {}) {
  return { headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(value) };
}

/** Whether Node was started with this file, whatever it was called: without its ending, or through a link. */
function isStarted() {
  try {
    return createRequire(import.meta.url).resolve(process.argv[1]) === fileURLToPath(import.meta.url);
  } catch {
    // It was started with no file, as by `node -e`.
    return false;
  }
}

if (isStarted()) {
  // Without the secret, anybody could write the cookie of any buyer.
  const missing = ['OPS_TOKEN', 'JWT_SECRET'].filter((name) => !process.env[name]);
  if (missing.length > 0) {
    console.error(`${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} missing.`);
    process.exit(1);
  }
  const { PORT = '3000', SHOP_URL, OPS_URL, OPS_TOKEN, JWT_SECRET, SALE = 'tickets' } = process.env;
  const shop = {
    shopUrl: SHOP_URL ?? 'http://localhost:8080',
    opsUrl: OPS_URL ?? 'http://localhost:9090',
    opsToken: OPS_TOKEN,
    jwtSecret: JWT_SECRET,
    saleId: SALE,
    // In a project that has Stockade as a package: import.meta.resolve('@stockade-engine/stockade/client').
    client: new URL('../../dist/client/', import.meta.url),
  };
  createShop(shop).listen(Number(PORT), '127.0.0.1', () => console.log(`http://localhost:${PORT}`));
}
