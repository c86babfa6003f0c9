/** The client's reaction to answers, and to none. The server answers by a script, or cuts the connection. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { BuyerClient, OperatorClient, PurchaseAborted, UnexpectedAnswer } from '../../../src/client/index.ts';
import { until } from '../../support/until.ts';

type Step =
  | 'cut'
  | 'silent'
  | {
      readonly status: number;
      readonly body: unknown;
      readonly retryAfter?: string;
      readonly date?: string;
      readonly location?: string;
    };

const problem = (code: string, status = 503): Step => ({ status, body: { code, title: code, status } });
/** A call ends with it, because it would have to wait beyond its deadline. So no request is under way when the deadline comes. */
const final = (step: Step) => ({ ...(step as object), retryAfter: '60' }) as Step;
const PLACED: Step = {
  status: 201,
  body: { orderId: '7', status: 'committed', saleId: 'web', quantity: 1 },
};
const SALE: Step = { status: 200, body: { id: 'web', stock: 5 } };

let server: Server | undefined;
afterEach(() => {
  vi.restoreAllMocks();
  server?.closeAllConnections();
  server?.close();
});

/** Answers one request after the other by the steps; the last one again and again. */
async function scripted(...steps: Step[]) {
  const requests: IncomingMessage[] = [];
  const bodies: string[] = [];
  const listening = createServer((request, response) => {
    const step = steps[Math.min(requests.length, steps.length - 1)]!;
    requests.push(request);
    let body = '';
    request.on('data', (piece) => {
      body += piece;
    });
    request.on('end', () => {
      bodies.push(body);
      if (step === 'cut') request.socket.destroy();
      else if (step !== 'silent') {
        const { status, retryAfter, location, date } = step;
        response.writeHead(status, {
          ...(date !== undefined && { date }),
          ...(retryAfter !== undefined && { 'retry-after': retryAfter }),
          ...(location !== undefined && { location }),
        });
        response.end(typeof step.body === 'string' ? step.body : JSON.stringify(step.body));
      }
    });
  });
  server = listening;
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
  return {
    url,
    requests,
    bodies,
    buyer: (deadlineMs = 20_000) => new BuyerClient({ url, deadlineMs, headers: { 'X-Buyer-Id': 'ann' } }),
    operator: (deadlineMs = 20_000) => new OperatorClient({ url, deadlineMs, token: 'a-secret-token' }),
  };
}

describe('a purchase', () => {
  test.each([
    ['cut'],
    [problem('unknown')],
    [problem('busy')],
    [problem('unavailable')],
    [problem('internal', 500)],
    [{ status: 502, body: '<html>' }],
  ] as const)('that meets %j is asked again with the same key', async (step) => {
    const { buyer, requests } = await scripted(step as Step, step as Step, PLACED);
    const outcome = await buyer().purchase({ saleId: 'web' });
    expect(outcome).toMatchObject({ code: 'committed', orderId: '7', quantity: 1 });
    const keys = requests.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toEqual([outcome.key, outcome.key, outcome.key]);
    expect(requests.map(({ method, url }) => `${method} ${url}`)).toContain('POST /v1/sales/web/orders');
  });

  test.each([
    ['a number that JSON does not have', Number.NaN, 'a is NaN, which JSON does not have'],
    ['a bigint', 1n, /BigInt/],
    ['a boxed number that JSON does not have', Object(Number.NaN), 'a is NaN, which JSON does not have'],
    ['a date that is none', new Date(Number.NaN), 'a is Invalid Date, which JSON does not have'],
    ['a map', new Map([['b', 1]]), 'a is a Map, which JSON does not have'],
    ['a set', new Set([1]), 'a is a Set, which JSON does not have'],
    ['a function', () => 1, 'a is a function, which JSON does not have'],
    ['a symbol', Symbol('b'), 'a is Symbol(b), which JSON does not have'],
    ['nothing in a list', [1, undefined], '1 is undefined, which JSON does not have'],
  ])('is not sent with %s in it', async (_, a, message) => {
    const { buyer, operator, requests } = await scripted(PLACED);
    const metadata = { deep: [{ a }] };
    await expect(buyer().purchase({ saleId: 'web', metadata })).rejects.toThrow(message);
    await expect(operator().createSale({ id: 'web', stock: 1, metadata })).rejects.toThrow(TypeError);
    expect(requests).toEqual([]);
  });

  // A program without types may misspell a name.
  test.each([[undefined], [''], [null], [7]])('is not sent for the sale %j', async (saleId) => {
    const { buyer, operator, requests } = await scripted(PLACED);
    const message = `saleId must be a text that is not empty, not ${JSON.stringify(saleId)}`;
    await expect(buyer().purchase({ saleId: saleId as string })).rejects.toThrow(message);
    await expect(operator().sale(saleId as string)).rejects.toThrow(message);
    await expect(
      buyer()
        .followSale(saleId as string)
        .next(),
    ).rejects.toThrow(message);
    expect(requests).toEqual([]);
  });

  test('is sent with a date, and without a member that is undefined', async () => {
    const { operator, bodies } = await scripted(SALE);
    const metadata = { at: new Date(0), no: undefined };
    await operator().createSale({ id: 'web', stock: 1, metadata });
    expect(bodies).toEqual(['{"id":"web","stock":1,"metadata":{"at":"1970-01-01T00:00:00.000Z"}}']);
  });

  // Without a key, a node takes each repetition for another purchase.
  test.each([[''], [null], [7], ['größe'], ['a b'], ['a\nb'], ['k'.repeat(129)]])(
    'is not sent with the key %j',
    async (key) => {
      const { buyer, requests } = await scripted('cut', PLACED);
      const purchase = buyer(300).purchase({ saleId: 'web', key: key as string });
      await expect(purchase).rejects.toThrow(`key is ${JSON.stringify(key)}, but must be 1 to 128 visible`);
      expect(requests).toEqual([]);
    },
  );

  // `fetch` would take them for steps in the path, and ask another route.
  test.each([['.'], ['..'], ['\ud800']])('is not sent for the sale %j, nor is another call', async (id) => {
    const { buyer, operator, requests } = await scripted(PLACED);
    const message = `is ${JSON.stringify(id)}, which can't be part of a path`;
    await expect(buyer().purchase({ saleId: id })).rejects.toThrow(message);
    await expect(buyer().ordersOf(id)).rejects.toThrow(TypeError);
    await expect(operator().deleteSale(id)).rejects.toThrow(TypeError);
    expect(requests).toEqual([]);
  });

  test('that is refused is sent once, and its outcome has the members of the problem', async () => {
    const refused = { code: 'limit_reached', title: 'x', status: 409, limit: 1, orderIds: ['7'] };
    const { buyer, requests } = await scripted({ status: 409, body: refused });
    expect(await buyer().purchase({ saleId: 'web', key: 'k' })).toEqual({ ...refused, key: 'k' });
    expect(requests).toHaveLength(1);
  });

  test.each([['cut'], ['silent'], [problem('unknown')]] as const)(
    'that meets %j to the end is unknown',
    async (step) => {
      const { buyer } = await scripted(step as Step);
      expect(await buyer(300).purchase({ saleId: 'web', key: 'k' })).toMatchObject({
        code: 'unknown',
        key: 'k',
      });
    },
  );

  test('is busy if every answer was; after a request without an answer it is unknown', async () => {
    const always = await scripted(problem('busy'), final(problem('busy')));
    expect(await always.buyer().purchase({ saleId: 'web' })).toMatchObject({ code: 'busy' });
    expect(always.requests).toHaveLength(2);
    const others = [
      problem('rate_limited', 429),
      problem('token_required', 403),
      problem('token_invalid', 403),
      problem('unknown_sale', 404),
    ];
    for (const last of [problem('busy'), problem('unavailable'), ...others]) {
      const after = await scripted('cut', final(last));
      expect(await after.buyer().purchase({ saleId: 'web' })).toMatchObject({ code: 'unknown' });
    }
  });

  test('whose only answer is internal is unknown, and no earlier request is made up', async () => {
    const { buyer, requests } = await scripted(final(problem('internal', 500)));
    expect(await buyer().purchase({ saleId: 'web' })).toMatchObject({
      code: 'unknown',
      detail: 'A request may have been executed; the last answer was internal: internal',
    });
    expect(requests).toHaveLength(1);
  });

  test('is not sent again when too little time is left for an answer', async () => {
    const { buyer, requests } = await scripted(problem('busy'), 'silent');
    expect(await buyer(149).purchase({ saleId: 'web' })).toMatchObject({ code: 'busy' });
    expect(requests).toHaveLength(1);
  });

  // As of a hidden tab, of a laptop that sleeps, or of a loop that was blocked.
  test.each([20_000, 19_950])('is not sent again if the pause ends %i ms late', async (lateMs) => {
    let requests = 0;
    const clock = performance.now.bind(performance);
    const time = vi.spyOn(performance, 'now');
    const fetch = async () => {
      requests++;
      setTimeout(() => time.mockImplementation(() => clock() + lateMs));
      return new Response('{"code":"busy","title":"busy","status":503}', { status: 503 });
    };
    const buyer = new BuyerClient({ url: 'http://shop.example', deadlineMs: 20_000, fetch });
    expect(await buyer.purchase({ saleId: 'web' })).toMatchObject({ code: 'busy' });
    expect(requests).toBe(1);
  });

  test('waits as long as Retry-After says, and not beyond the deadline', async () => {
    const { buyer, requests } = await scripted(final(problem('busy')));
    expect(await buyer(5_000).purchase({ saleId: 'web' })).toMatchObject({ code: 'busy' });
    expect(requests).toHaveLength(1);
  });

  test('waits for a date in Retry-After too, by the clock of who gave it', async () => {
    const [date, retryAfter] = ['Wed, 21 Oct 2015 07:28:00 GMT', 'Wed, 21 Oct 2015 07:29:00 GMT'];
    const { buyer, requests } = await scripted({ ...(problem('busy') as object), date, retryAfter } as Step);
    expect(await buyer(5_000).purchase({ saleId: 'web' })).toMatchObject({ code: 'busy' });
    expect(requests).toHaveLength(1);
  });

  test('ends with the signal’s reason', async () => {
    const { buyer } = await scripted('silent');
    const controller = new AbortController();
    const purchase = buyer().purchase({ saleId: 'web' }, { signal: controller.signal });
    controller.abort(new Error('the buyer went away'));
    await expect(purchase).rejects.toThrow('the buyer went away');
  });

  describe('that rejects after it was sent', () => {
    async function aborted(purchase: { saleId: string; key?: string }) {
      const { buyer, requests } = await scripted('cut', 'silent');
      const controller = new AbortController();
      const reason = new Error('the buyer went away');
      const outcome = buyer()
        .purchase(purchase, { signal: controller.signal })
        .catch((error: unknown) => error);
      await until(() => requests.length === 2, { what: 'the second request' });
      controller.abort(reason);
      return { error: await outcome, reason, key: requests[0]!.headers['idempotency-key'] };
    }

    test('tells the key that the client has made', async () => {
      const { error, reason, key } = await aborted({ saleId: 'web' });
      expect(error).toBeInstanceOf(PurchaseAborted);
      expect(error).toMatchObject({ name: 'PurchaseAborted', key, cause: reason });
      expect(key).toMatch(/^[0-9a-f]{32}$/);
    });

    test('rejects with the signal’s reason itself if the caller knows the key', async () => {
      const { error, reason } = await aborted({ saleId: 'web', key: 'k' });
      expect(error).toBe(reason);
    });

    test('tells the key if somebody else answers the repetition', async () => {
      const { buyer, requests } = await scripted('cut', { status: 200, body: '<html>' });
      const error = await buyer()
        .purchase({ saleId: 'web' })
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(UnexpectedAnswer);
      expect(error).toMatchObject({ key: requests[0]!.headers['idempotency-key'] });
    });
  });

  test('sends sale, key and quantity unchanged', async () => {
    const { buyer, requests } = await scripted(PLACED);
    await buyer().purchase({ saleId: 'a/b', key: 'k', awaitCommit: false, purchaseToken: 't' });
    expect(requests[0]).toMatchObject({
      url: '/v1/sales/a%2Fb/orders',
      headers: {
        'idempotency-key': 'k',
        prefer: 'respond-async',
        'purchase-token': 't',
        'x-buyer-id': 'ann',
      },
    });
  });
});

describe('an operator’s change', () => {
  test.each([
    ['a top-up', (client: OperatorClient) => client.changeSale('web', { action: 'top-up', units: 5 })],
    ['a withdrawal', (client: OperatorClient) => client.changeSale('web', { action: 'withdraw', units: 5 })],
    ['a creation', (client: OperatorClient) => client.createSale({ id: 'web', stock: 1 })],
    ['a second delivery', (client: OperatorClient) => client.resend('1')],
  ])('that is not repeatable is sent once: %s', async (_, change) => {
    const { operator, requests } = await scripted('cut', SALE);
    expect(await change(operator())).toMatchObject({ code: 'unknown' });
    expect(requests).toHaveLength(1);
  });

  test('that was certainly not made is sent again', async () => {
    const { operator, requests } = await scripted(problem('busy'), SALE);
    const done = await operator().changeSale('web', { action: 'withdraw', units: 5 });
    expect(done).toEqual({ code: 'done', sale: { id: 'web', stock: 5 } });
    expect(requests[1]).toMatchObject({
      method: 'PATCH',
      headers: { authorization: 'Bearer a-secret-token' },
    });
  });

  test('that is repeatable is sent again', async () => {
    const { operator, requests } = await scripted('cut', problem('unavailable'), SALE);
    expect(await operator().changeSale('web', { action: 'pause' })).toMatchObject({ code: 'done' });
    expect(requests).toHaveLength(3);
  });
});

describe('a gateway that redirects', () => {
  // `fetch` makes a GET of a POST that is answered so.
  const MOVED: Step = { status: 301, body: '', location: '/v1/moved' };

  test.each([
    ['a recovery', (client: OperatorClient) => client.recover('web'), { saleId: 'web', state: 'none' }],
    ['an erasure', (client: OperatorClient) => client.eraseBuyer({ buyerId: 'ann' }), { erased: [] }],
  ])('a change is not followed, because it would become a query: %s', async (_, change, body) => {
    const { operator, requests } = await scripted(MOVED, { status: 200, body });
    const error = await change(operator()).catch((reason) => reason);
    expect(error).toBeInstanceOf(UnexpectedAnswer);
    expect(error.message).toMatch(/answered with a redirect: use the address that it leads to$/);
    expect(requests.map(({ method }) => method)).toEqual(['POST']);
  });

  test('a browser hides the status of a redirect', async () => {
    const hidden = {
      type: 'opaqueredirect',
      status: 0,
      ok: false,
      headers: new Headers(),
      text: async () => '',
    };
    const fetch = async () => hidden as unknown as Response;
    const client = new OperatorClient({ url: 'http://shop.example', token: 't', fetch });
    await expect(client.recover('web')).rejects.toThrow('answered with a redirect');
  });

  test('a query is followed', async () => {
    const { operator, requests } = await scripted(MOVED, SALE);
    expect(await operator().sale('web')).toMatchObject({ code: 'done' });
    expect(requests.map(({ url }) => url)).toEqual(['/v1/sales/web', '/v1/moved']);
  });
});

test('a query without an answer is unavailable', async () => {
  const { buyer } = await scripted('cut');
  expect(await buyer(300).sale('web')).toMatchObject({ code: 'unavailable', status: 0 });
});

test.each([
  [404, '<html>nothing here</html>'],
  [403, { code: 'blocked', message: 'a firewall says no' }],
  [200, '<html>sign in</html>'],
  [200, { message: 'hello' }],
  [200, 'null'],
  [200, '["7"]'],
  [204, ''],
])('an answer that is not Stockade’s is reported as such: %i %j', async (status, body) => {
  const { buyer, operator, requests } = await scripted({ status, body });
  await expect(buyer().sale('web')).rejects.toThrow(UnexpectedAnswer);
  await expect(buyer().purchase({ saleId: 'web' })).rejects.toThrow(UnexpectedAnswer);
  await expect(buyer().cancel('7')).rejects.toThrow(UnexpectedAnswer);
  await expect(operator().changeSale('web', { action: 'pause' })).rejects.toThrow(UnexpectedAnswer);
  await expect(operator().readyz()).rejects.toThrow(UnexpectedAnswer);
  expect(requests).toHaveLength(5);
});

test('a page of HTML is not taken for a text', async () => {
  const { operator } = await scripted({ status: 200, body: '\n<!doctype html>' });
  await expect(operator().metrics()).rejects.toThrow(UnexpectedAnswer);
  await expect(operator().drawFile('web')).rejects.toThrow(UnexpectedAnswer);
});

describe.each([
  [503, { message: 'Service Unavailable' }],
  [503, { status: 503, error: 'Service Unavailable' }],
  [503, 'null'],
  [503, '"no healthy upstream"'],
  [504, { code: 'upstream_timeout' }],
  [500, { code: 500, message: 'oops' }],
  [522, '<html>'],
])('a gateway’s %i %j is no answer', (status, body) => {
  const step = { status, body };

  test('a request that may be repeated is repeated', async () => {
    const { buyer, requests } = await scripted(step, PLACED);
    expect(await buyer().purchase({ saleId: 'web' })).toMatchObject({ code: 'committed' });
    expect(requests).toHaveLength(2);
  });

  test('to the end, a change is unknown and a query unavailable', async () => {
    const { buyer, operator } = await scripted(final(step));
    expect(await buyer().purchase({ saleId: 'web' })).toMatchObject({ code: 'unknown', status: 0 });
    expect(await buyer().cancel('7')).toMatchObject({ code: 'unknown', status: 0 });
    expect(await buyer().order('7')).toMatchObject({ code: 'unavailable', status: 0 });
    expect(await operator().readyz()).toMatchObject({ code: 'unavailable', status: 0 });
    expect(await operator().createSale({ id: 'web', stock: 1 })).toMatchObject({ code: 'unknown' });
  });
});

test('only readyz has an answer that comes with 503', async () => {
  const { buyer, operator } = await scripted(
    final({ status: 503, body: { status: 'not ready', reason: 'Redis is away' } }),
  );
  expect(await operator().readyz()).toEqual({ code: 'found', status: 'not ready', reason: 'Redis is away' });
  expect(await operator().healthz()).toMatchObject({ code: 'unavailable', status: 0 });
  expect(await buyer().cancel('7')).toMatchObject({ code: 'unknown', status: 0 });
});

test('a code that only a newer version knows is handed over', async () => {
  const future = { type: '/problems/too_late', title: 'x', code: 'too_late', since: 'noon' };
  for (const status of [409, 503]) {
    const { buyer, requests } = await scripted({ status, body: { ...future, status } });
    expect(await buyer().cancel('7')).toEqual({ ...future, status });
    expect(requests).toHaveLength(1);
  }
});

test('a header of the program replaces none of the client’s, in whatever case', async () => {
  const { url, requests } = await scripted(PLACED, SALE);
  const headers = { 'Content-Type': 'text/plain', 'Idempotency-Key': 'other', Authorization: 'Bearer other' };
  await new BuyerClient({ url, headers }).purchase({ saleId: 'web', key: 'k' });
  await new OperatorClient({ url, headers, token: 'a-secret-token' }).sale('web');
  expect(requests[0]!.headers).toMatchObject({ 'content-type': 'application/json', 'idempotency-key': 'k' });
  expect(requests[1]!.headers).toMatchObject({ authorization: 'Bearer a-secret-token' });
});

test('a header that can’t be sent is refused, and its value not shown', async () => {
  const { url, buyer, requests } = await scripted(PLACED);
  expect(() => new BuyerClient({ url, headers: { Authorization: 'Bearer Зоя' } })).toThrow(
    /^the header "Authorization" can't be sent: its name or value has characters that HTTP does not allow$/,
  );
  expect(() => new OperatorClient({ url, token: 't', operator: 'Зоя' })).toThrow('"x-operator"');
  expect(() => new OperatorClient({ url, token: 'a\nb' })).toThrow('"authorization"');
  await expect(buyer().purchase({ saleId: 'web', purchaseToken: 'a\nb' })).rejects.toThrow(
    '"purchase-token"',
  );
  expect(requests).toEqual([]);
});

describe('headers that can’t be had', () => {
  const failing = () => {
    throw new Error('the session has ended');
  };

  test('leave a change unmade, and not unknown', async () => {
    const { url, requests } = await scripted(PLACED);
    for (const headers of [failing, async () => failing(), () => ({ Cookie: 'Зоя' })]) {
      const buyer = new BuyerClient({ url, headers, deadlineMs: 150 });
      expect(await buyer.purchase({ saleId: 'web' })).toMatchObject({ code: 'unavailable', status: 0 });
    }
    expect(requests).toEqual([]);
  });

  test('are asked for again; what was sent before stays unknown', async () => {
    const { url, requests } = await scripted('cut', PLACED);
    let calls = 0;
    const once = () => (++calls === 1 ? { 'x-buyer-id': 'ann' } : failing());
    const buyer = new BuyerClient({ url, headers: once, deadlineMs: 500 });
    expect(await buyer.purchase({ saleId: 'web' })).toMatchObject({ code: 'unknown' });
    expect(requests).toHaveLength(1);
    const later = () => (++calls % 2 === 1 ? { 'x-buyer-id': 'ann' } : failing());
    const patient = new BuyerClient({ url, headers: later });
    expect(await patient.purchase({ saleId: 'web' })).toMatchObject({ code: 'committed' });
    expect(requests).toHaveLength(2);
  });
});

describe('headers that never come', () => {
  const headers = () => new Promise<never>(() => {});

  test('do not keep a call beyond its deadline', async () => {
    const buyer = new BuyerClient({ url: 'http://127.0.0.1:1', deadlineMs: 50, headers });
    expect(await buyer.order('7')).toMatchObject({
      code: 'unavailable',
      detail: expect.stringMatching('no answer within'),
    });
  });

  test('do not keep a call whose signal is aborted', async () => {
    const buyer = new BuyerClient({ url: 'http://127.0.0.1:1', headers });
    const controller = new AbortController();
    const order = buyer.order('7', { signal: controller.signal });
    controller.abort(new Error('the buyer went away'));
    await expect(order).rejects.toThrow('the buyer went away');
  });
});

test('a time that is longer than a timer can be does not end a request at once', async () => {
  let ended: unknown;
  const options = { url: 'http://127.0.0.1:1', deadlineMs: Number.POSITIVE_INFINITY, attemptMs: 2 ** 31 };
  const buyer = new BuyerClient({
    ...options,
    fetch: async (_, init) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      ended = init?.signal?.reason;
      return new Response('{"code":"forbidden","title":"no","status":403}', { status: 403 });
    },
  });
  expect(await buyer.order('7')).toMatchObject({ code: 'forbidden' });
  expect(ended).toBeUndefined();
});

test('an operator’s deadline that is undefined is the usual one', async () => {
  const { url } = await scripted({ ...(problem('busy') as object), retryAfter: '20' } as Step);
  const controller = new AbortController();
  const operator = new OperatorClient({ url, token: 't', deadlineMs: undefined });
  const call = operator.sale('web', { signal: controller.signal });
  setTimeout(() => controller.abort(new Error('it waits')), 200);
  await expect(call).rejects.toThrow('it waits');
});

test.each([
  [{ url: 'shop.example' }, TypeError],
  [{ url: 'ftp://shop.example' }, TypeError],
  [{ url: 'http://' }, TypeError],
  [{ url: 'http://ann:secret@localhost' }, TypeError],
  [{ url: 'http://localhost/?page=1' }, TypeError],
  [{ url: 'http://localhost/#page' }, TypeError],
  [{ url: 'http://localhost', deadlineMs: 0 }, RangeError],
  [{ url: 'http://localhost', attemptMs: Number.NaN }, RangeError],
])('%j is refused', (options, kind) => {
  expect(() => new BuyerClient(options)).toThrow(kind);
});
