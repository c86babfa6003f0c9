/** Following a sale: what the client makes of streams that end, break, fall silent or are refused. Time is under control. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { BuyerClient, type SaleUpdate, UnexpectedAnswer } from '../../../src/client/index.ts';

const TYPE = { 'content-type': 'text/event-stream' };
const sale = (remaining: number) => ({ id: 'web', remaining });
const event = (remaining: number) =>
  `id: t${remaining}\nevent: sale\ndata: ${JSON.stringify(sale(remaining))}\n\n`;
const found = (remaining: number) => ({ code: 'found', sale: sale(remaining) });
const END = 'event: end\ndata: {"reason":"closed"}\n\n';
const problem = (code: string, status: number, headers = {}) =>
  new Response(JSON.stringify({ code, title: `it is ${code}`, status }), { status, headers });

/** One answer of the server, under the control of the test. */
class Answer {
  readonly signal: AbortSignal;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  #stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  #resolve!: (response: Response) => void;
  #reject!: (error: unknown) => void;
  readonly response: Promise<Response>;

  constructor(url: string, { signal, headers }: RequestInit) {
    [this.url, this.signal, this.headers] = [url, signal!, headers as Record<string, string>];
    this.response = new Promise((resolve, reject) => {
      [this.#resolve, this.#reject] = [resolve, reject];
    });
    this.signal.addEventListener('abort', () => {
      this.#reject(this.signal.reason);
      this.break(this.signal.reason);
    });
  }

  with(response: Response): void {
    this.#resolve(response);
  }

  send(text: string): void {
    if (!this.#stream) {
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          this.#stream = controller;
        },
      });
      this.with(new Response(body, { headers: TYPE }));
    }
    this.#stream!.enqueue(new TextEncoder().encode(text));
  }

  end(): void {
    this.#stream!.close();
  }

  break(error: unknown): void {
    try {
      this.#stream?.error(error);
    } catch {
      // It was closed before.
    }
  }
}

let answers: Answer[];
let updates: (SaleUpdate | { code: 'left'; error?: unknown })[];

beforeEach(() => {
  [answers, updates] = [[], []];
  vi.useFakeTimers();
  vi.spyOn(Math, 'random').mockReturnValue(1);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const client = () =>
  new BuyerClient({
    url: 'http://shop.example/api',
    headers: { authorization: 'Bearer t' },
    fetch: ((url: string, init: RequestInit) => {
      answers.push(new Answer(url, init));
      return answers.at(-1)!.response;
    }) as typeof fetch,
  });

/** Follows the sale until it ends. Each update, and the end, is in `updates`. */
function follow(signal?: AbortSignal): void {
  const run = async () => {
    for await (const update of client().followSale('web', { signal })) updates.push(update);
  };
  run().then(
    () => updates.push({ code: 'left' }),
    (error) => updates.push({ code: 'left', error }),
  );
}

/** Lets what is due happen. */
const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

test('each state is an update; comments and unknown events are none; the last event ends it', async () => {
  follow();
  await pass();
  expect(answers).toHaveLength(1);
  expect(answers[0]).toMatchObject({
    url: 'http://shop.example/api/v1/sales/web/events',
    headers: { authorization: 'Bearer t' },
  });
  answers[0]!.send(`retry: 2000\n${event(5)}:\n\n`);
  await pass();
  expect(updates).toEqual([found(5)]);
  const bytes = event(4).replaceAll('\n', '\r\n');
  for (const character of bytes) answers[0]!.send(character);
  answers[0]!.send('event: other\ndata: x\n\n');
  await pass();
  expect(updates).toEqual([found(5), found(4)]);
  answers[0]!.send(event(0) + END);
  await pass();
  expect(updates.slice(2)).toEqual([found(0), { code: 'ended', reason: 'closed' }, { code: 'left' }]);
  expect(answers[0]!.signal.aborted, 'the connection is closed').toBe(true);
  await pass(60_000);
  expect(answers).toHaveLength(1);
  expect(vi.getTimerCount()).toBe(0);
});

test('whatever a title is, and however an event is divided, the update has all of it', async () => {
  const title = 'Zoë\u2028\u2029\u0085🎟 data: x';
  const of = { id: 'web', title };
  follow();
  await pass();
  answers[0]!.send(`event: sale\ndata: ${JSON.stringify(of)}\n\n`);
  const lines = JSON.stringify(of, null, 1).split('\n');
  answers[0]!.send(`event: sale\n${lines.map((line) => `data: ${line}\n`).join('')}\n`);
  await pass();
  expect(updates).toEqual([
    { code: 'found', sale: of },
    { code: 'found', sale: of },
  ]);
  answers[0]!.send(END);
  await pass();
});

test('a place is followed in the same way, with its token', async () => {
  const place = { number: 3, state: 'waiting' };
  const told: object[] = [];
  const run = async () => {
    for await (const update of client().followPlace('web', 'p1.3.1.mac')) told.push(update);
  };
  const done = run();
  await pass();
  expect(answers[0]).toMatchObject({
    url: 'http://shop.example/api/v1/sales/web/place/events',
    headers: { authorization: 'Bearer t', 'place-token': 'p1.3.1.mac' },
  });
  answers[0]!.send(`event: place\ndata: ${JSON.stringify(place)}\n\n${event(5)}`);
  answers[0]!.send('event: end\ndata: {"reason":"lapsed"}\n\n');
  await pass();
  await done;
  expect(told).toEqual([
    { code: 'found', place },
    { code: 'ended', reason: 'lapsed' },
  ]);
});

test.each([undefined, 'p1.3.1.old'])(
  'the newest place token goes with each new connection, first %s',
  async (first) => {
    const abort = new AbortController();
    const run = async () => {
      for await (const _ of client().followPlace('web', first, { signal: abort.signal }));
    };
    const done = run().catch(() => {});
    const told = (place: object) => answers.at(-1)!.send(`event: place\ndata: ${JSON.stringify(place)}\n\n`);
    const again = async () => {
      await pass();
      answers.at(-1)!.end();
      await pass(1_000);
    };
    await pass();
    told({ number: 3, placeToken: 'p1.3.1.mac' });
    told({ number: 3, placeToken: 'p1.3.1.new' });
    await again();
    told({ number: 3 });
    await again();
    const sent = answers.map(({ headers }) => headers['place-token']);
    expect(sent).toEqual([first, 'p1.3.1.new', 'p1.3.1.new']);
    expect(answers[1]!.headers).toMatchObject({ authorization: 'Bearer t' });
    abort.abort();
    await done;
  },
);

test('a place token that can’t be sent is refused at once', async () => {
  const next = client().followPlace('web', 'a\nb').next();
  await expect(next).rejects.toThrow(TypeError);
  await expect(next).rejects.toThrow('"place-token"');
  expect(answers).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});

test('a node that does not know how the place stands is left for another one, perhaps', async () => {
  const place = { saleId: 'web', number: 3, state: 'waiting' };
  const told: object[] = [];
  const abort = new AbortController();
  const run = async () => {
    for await (const update of client().followPlace('web', 'p1.3.1.mac', { signal: abort.signal }))
      told.push(update);
  };
  const done = run().catch(() => {});
  await pass();
  answers[0]!.send(`retry: 2000\nevent: place\ndata: ${JSON.stringify(place)}\n\n`);
  answers[0]!.send('event: unavailable\ndata: {"code":"unavailable"}\n\n');
  await pass(2_000);
  expect(answers).toHaveLength(2);
  answers[1]!.send(`event: place\ndata: ${JSON.stringify(place)}\n\n`);
  await pass();
  expect(told).toEqual([
    { code: 'found', place },
    { code: 'interrupted', detail: 'the node does not know now how the place stands' },
    { code: 'found', place },
  ]);
  abort.abort();
  await done;
});

test('a stream that ends or breaks is opened again, after the time that the node has named', async () => {
  follow();
  await pass();
  answers[0]!.send(`retry: 2000\n${event(5)}`);
  await pass();
  answers[0]!.end();
  await pass();
  expect(updates.slice(1)).toEqual([{ code: 'interrupted', detail: 'the stream has ended' }]);
  await pass(1_999);
  expect(answers).toHaveLength(1);
  await pass(1);
  expect(answers).toHaveLength(2);
  answers[1]!.send(event(4));
  await pass();
  answers[1]!.break(new Error('reset'));
  await pass(2_000);
  answers[2]!.send(event(3));
  await pass();
  expect(updates.slice(2)).toEqual([found(4), { code: 'interrupted', detail: 'reset' }, found(3)]);
});

test('the pauses grow while nothing comes, and an outage is told once', async () => {
  follow();
  const begun: number[] = [];
  for (let i = 0; i < 8; i++) {
    await pass();
    begun.push(performance.now());
    answers.at(-1)!.with(problem(i % 2 === 0 ? 'busy' : 'unavailable', 503));
    await pass();
    await vi.advanceTimersToNextTimerAsync();
  }
  const pauses = begun.slice(1).map((at, i) => Math.round((at - begun[i]!) / 1_000));
  expect(pauses).toEqual([1, 2, 4, 8, 16, 30, 30]);
  expect(updates).toEqual([{ code: 'interrupted', detail: 'it is busy' }]);
  answers.at(-1)!.send(event(1));
  await pass();
  answers.at(-1)!.end();
  await pass(1_000);
  expect(answers, 'after an event the pause is short again').toHaveLength(10);
  expect(updates.slice(1)).toEqual([found(1), { code: 'interrupted', detail: 'the stream has ended' }]);
});

test('the pause is random, and as long as Retry-After says at least', async () => {
  vi.mocked(Math.random).mockReturnValue(0);
  follow();
  await pass();
  answers[0]!.with(new Response('<html>', { status: 502 }));
  await pass(500);
  expect(answers).toHaveLength(2);
  answers[1]!.with(problem('rate_limited', 429, { 'retry-after': '10' }));
  await pass(9_999);
  expect(answers).toHaveLength(2);
  await pass(1);
  expect(answers).toHaveLength(3);
});

test('a Retry-After that is longer than a timer can be does not make it hurry', async () => {
  follow();
  await pass();
  answers[0]!.with(problem('busy', 503, { 'retry-after': '3000000' }));
  await pass(3_600_000);
  expect(answers).toHaveLength(1);
});

test('a time to connect again that is none does not make it hurry', async () => {
  follow();
  await pass();
  answers[0]!.send(`retry: -5\n${event(5)}`);
  answers[0]!.end();
  await pass(999);
  expect(answers).toHaveLength(1);
  await pass(1);
  expect(answers).toHaveLength(2);
});

test.each([
  [503, '{"message":"Service Unavailable"}'],
  [503, 'null'],
  [504, '{"code":"upstream_timeout"}'],
])('a gateway’s %i %s interrupts it', async (status, body) => {
  follow();
  await pass();
  answers[0]!.with(new Response(body, { status }));
  await pass(1_000);
  expect(updates).toEqual([{ code: 'interrupted', detail: `a gateway answered ${status}` }]);
  expect(answers).toHaveLength(2);
});

test('headers that never come interrupt it too, and the signal ends it', async () => {
  const headers = () => new Promise<never>(() => {});
  const controller = new AbortController();
  const buyer = new BuyerClient({ url: 'http://shop.example', headers });
  const following = buyer.followSale('web', { signal: controller.signal });
  const first = following.next();
  await pass(15_000);
  expect((await first).value).toEqual({ code: 'interrupted', detail: 'nothing came for 15 s' });
  const second = following.next();
  await pass(1_000);
  controller.abort(new Error('the page is left'));
  await expect(second).rejects.toThrow('the page is left');
});

test('a silent connection is given up, also one that never answers', async () => {
  follow();
  await pass(14_999);
  expect(answers[0]!.signal.aborted).toBe(false);
  await pass(1);
  expect(answers[0]!.signal.aborted).toBe(true);
  expect(updates).toEqual([{ code: 'interrupted', detail: 'nothing came for 15 s' }]);
  await pass(1_000);
  answers[1]!.send(event(2));
  await pass(14_000);
  answers[1]!.send(':\n\n');
  await pass(14_000);
  expect(answers[1]!.signal.aborted, 'a comment counts').toBe(false);
  await pass(1_000);
  expect(answers[1]!.signal.aborted).toBe(true);
});

test('a connection is not silent while the loop is busy with an update', async () => {
  const run = async () => {
    for await (const update of client().followSale('web')) {
      updates.push(update);
      if (updates.length === 1) await new Promise((resolve) => setTimeout(resolve, 20_000));
    }
  };
  void run();
  await pass();
  answers[0]!.send(event(5));
  await pass();
  answers[0]!.send(event(4));
  await pass(20_000);
  expect(updates).toEqual([found(5), found(4)]);
  await pass(15_000);
  expect(updates.at(-1)).toEqual({ code: 'interrupted', detail: 'nothing came for 15 s' });
});

test('a refusal that would come again is the last update', async () => {
  follow();
  await pass();
  answers[0]!.with(problem('unknown_sale', 404));
  await pass(60_000);
  expect(updates).toEqual([
    { code: 'unknown_sale', title: 'it is unknown_sale', status: 404 },
    { code: 'left' },
  ]);
  expect(answers).toHaveLength(1);
});

test.each([
  [() => new Response('<html>', { status: 200, headers: { 'content-type': 'text/html' } })],
  [() => new Response('<html>', { status: 404 })],
  [() => new Response('{}', { status: 200, headers: { 'content-type': 'application/json' } })],
])('an answer that is not the node’s is an error', async (answer) => {
  follow();
  await pass();
  answers[0]!.with(answer());
  await pass();
  expect(updates).toEqual([{ code: 'left', error: expect.any(UnexpectedAnswer) }]);
});

test('an endless event is given up', async () => {
  follow();
  await pass();
  answers[0]!.send(event(1));
  answers[0]!.send('x'.repeat(100_001));
  await pass();
  expect(updates).toEqual([found(1), { code: 'interrupted', detail: 'an event is too long' }]);
});

test.each(['while it connects', 'between events', 'in a pause'])('the signal ends it %s', async (when) => {
  const controller = new AbortController();
  follow(controller.signal);
  await pass();
  if (when !== 'while it connects') answers[0]!.send(event(1));
  await pass();
  if (when === 'in a pause') answers[0]!.end();
  await pass();
  const reason = new Error('the page is left');
  controller.abort(reason);
  await pass();
  expect(updates.at(-1)).toEqual({ code: 'left', error: reason });
  expect(answers[0]!.signal.aborted).toBe(true);
  await pass(60_000);
  expect(answers).toHaveLength(1);
  expect(vi.getTimerCount()).toBe(0);
});

test('the signal ends it before a pause too, if it is aborted while the outage is told', async () => {
  const controller = new AbortController();
  const reason = new Error('the page is left');
  const run = async () => {
    for await (const update of client().followSale('web', { signal: controller.signal })) {
      updates.push(update);
      if (update.code === 'interrupted') controller.abort(reason);
    }
  };
  run().catch((error) => updates.push({ code: 'left', error }));
  await pass();
  answers[0]!.with(problem('busy', 503, { 'retry-after': '600' }));
  await pass();
  expect(updates.at(-1)).toEqual({ code: 'left', error: reason });
  expect(vi.getTimerCount()).toBe(0);
});

test('a loop that is left closes the connection', async () => {
  const run = async () => {
    for await (const update of client().followSale('web')) {
      updates.push(update);
      break;
    }
  };
  const done = run();
  await pass();
  answers[0]!.send(event(1) + event(2));
  await pass();
  await done;
  expect(updates).toEqual([found(1)]);
  expect(answers[0]!.signal.aborted).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});
