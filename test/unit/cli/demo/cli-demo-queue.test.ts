/** The demo of the queue: what its crowd does, its verdict, its picture, and the server of its page. */
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import type { Seen } from '../../../../src/cli/demo/queue/crowd.ts';
import { countOvertaken, judgeQueue, queueVerdictText } from '../../../../src/cli/demo/queue/judge.ts';
import { DemoPage } from '../../../../src/cli/demo/queue/page-server.ts';
import { queueLines } from '../../../../src/cli/demo/queue/picture.ts';
import { peopleOf, queuePlanFrom, shownPerson } from '../../../../src/cli/demo/queue/plan.ts';
import type { Standing } from '../../../../src/cli/demo/queue/standing.ts';
import { looks } from '../../../../src/cli/terminal/look.ts';
import type { OperatorClient, Place, VerifyReport } from '../../../../src/client/index.ts';
import { InvalidInput } from '../../../../src/engine/errors.ts';

const SECRET = 'a-secret-of-the-tests-with-enough-characters';
const ROOT = pathToFileURL(fileURLToPath(new URL('../../../../', import.meta.url)));
const FOLDERS = {
  shop: new URL('examples/shop-page/page/', ROOT),
  own: new URL('src/cli/demo/queue/page/', ROOT),
  client: new URL('dist/client/index.js', ROOT),
};

const plan = queuePlanFrom({ queue: 'fifo', seed: '7' });
const standing: Standing = {
  ...{ stock: 100, opensInMs: 0, waiting: 30, hopeless: 5, offered: 20, bought: 60, givenBack: 8, lapsed: 2 },
  shown: { number: 84, state: 'waiting', rank: 84, ahead: 1 },
};

function seen(rank: number, offeredAtMs?: number, state: Place['state'] = 'bought'): Seen {
  const place = { saleId: 'x', number: rank, quantity: 1, rank, state, placeToken: 'p' } as Place;
  return { place, ...(offeredAtMs !== undefined && { offeredAtMs, orderId: String(rank) }) };
}

const report = (changes: Partial<VerifyReport> = {}) =>
  ({ ok: true, committedOrders: 100, distinctBuyers: 100, ...changes }) as VerifyReport;

describe('the plan', () => {
  test('lists all faults at once, with the options that mean nothing to a queue', () => {
    const call = () => queuePlanFrom({ queue: 'fifo', requests: '5', buyers: '0', opensIn: 'soon' });
    expect(call).toThrow(InvalidInput);
    expect(call).toThrow(
      /--requests means nothing with --queue.*--buyers is "0", but must be.*--opens-in is "soon", but must be/,
    );
  });

  test('the same seed has the same people: early and late, buying, giving back and letting lapse', () => {
    const people = peopleOf(plan);
    expect(peopleOf(plan)).toEqual(people);
    expect(people.length).toBe(200);
    expect(people.filter(({ comesAtMs }) => comesAtMs < plan.opensInMs).length).toBe(120);
    expect(new Set(people.map(({ deed }) => deed)).size).toBe(3);
    expect(people.filter(({ deed }) => deed === 'buys').length).toBeGreaterThan(plan.stock);
    expect(people[shownPerson(people)]).toMatchObject({ deed: 'buys' });
  });

  test.each([1, 2, 3])('a crowd of %i', (buyers) => {
    const people = peopleOf({ ...plan, buyers });
    expect(people.every(({ comesAtMs }) => Number.isFinite(comesAtMs))).toBe(true);
    expect(people[shownPerson(people)]).toBeDefined();
  });
});

describe('who was overtaken', () => {
  test('nobody, if offers come in the order of ranks, or in one round', () => {
    expect(
      countOvertaken([seen(2, 5_000), seen(1, 1_000), seen(3, 4_800), seen(4, undefined, 'hopeless')]),
    ).toBe(0);
  });

  test('who waits while somebody behind has an offer, and who gets it later than somebody behind', () => {
    expect(
      countOvertaken([seen(1, 9_000), seen(2, 1_000), seen(3, undefined, 'waiting'), seen(4, 9_500)]),
    ).toBe(2);
  });

  test('not who has left before', () => {
    expect(countOvertaken([seen(1, undefined, 'left'), seen(2, 1_000)])).toBe(0);
  });
});

const toldOf = (...orderIds: string[]) => orderIds.map((orderId, i) => ({ ...seen(i + 1, 1_000), orderId }));

describe('the verdict', () => {
  const end = { ...standing, waiting: 0, offered: 0, bought: 100 };

  test('holds', () => {
    const verdict = judgeQueue(plan, [seen(1, 1_000)], end, report());
    expect(verdict).toMatchObject({ sold: 100, overtaken: 0, undersold: 0, verify: 'ok', holds: true });
    expect(queueVerdictText(verdict)).toMatch(
      /^Holds: 100 units went to 100 buyers in their turn; nobody was/,
    );
  });

  test.each([
    ['1 place overtaken', [seen(1, 9_000), seen(2, 1_000)], report()],
    ['5 units not sold although buyers waited', [], report({ committedOrders: 95, distinctBuyers: 95 })],
    ['1 more units sold', [], report({ committedOrders: 101, distinctBuyers: 101 })],
    ['belong to only 99 buyers', [], report({ distinctBuyers: 99 })],
    ['1 buyer got no answer', [seen(1)], report()],
    ['verify failed', [], report({ ok: false })],
    // All have an order by the answers, and so nobody waits.
    [
      'buyers were told of 2 orders, Postgres has 1',
      toldOf('7', '8'),
      report({ committedOrders: 1, distinctBuyers: 1 }),
    ],
  ])('%s', (text, crowd, found) => {
    const verdict = judgeQueue(plan, crowd, end, found);
    expect(verdict.holds).toBe(false);
    expect(queueVerdictText(verdict)).toContain(text);
  });
});

describe('the picture', () => {
  const lines = (now: Standing, columns = 80) =>
    queueLines(now, 200, looks({ isTTY: true }, { NO_COLOR: '1' }), columns);

  test('has the stock, the people, and one of them', () => {
    const text = lines(standing).join('\n');
    expect(text).toMatch(
      /^The sale is open\.\nunits free {8}20 .*\nunits offered {5}20 .*\nunits sold {8}60 /,
    );
    expect(text).toMatch(/\nwaiting {11}30 .*\nno chance now {6}5 /);
    expect(text).toMatch(/One of them, place 84: 1 person is ahead$/);
    for (const line of lines(standing).slice(0, 6)) expect([...line].length).toBeLessThan(80);
  });

  test('of the lobby: when it opens', () => {
    const text = lines({ ...standing, opensInMs: 4_200 }).join('\n');
    expect(text).toMatch(/^The sale opens in 5 s\./);
    expect(text).toMatch(/\nin the lobby {6}30 /);
  });
});

describe('the page', () => {
  let page: DemoPage | undefined;
  afterEach(() => page?.close());

  const shown = { shopUrl: 'http://127.0.0.1:1', saleId: 'demo-x', standing: () => standing };
  const opened = async () => {
    page = await DemoPage.open(SECRET, FOLDERS);
    const order = { code: 'done', order: { buyerId: 'somebody-else' } };
    const operator = { order: async () => order } as unknown as OperatorClient;
    page.show({ ...shown, operator });
    return page;
  };

  test('is the shop’s page with the card of the crowd, and says how the sale stands', async () => {
    const { origin } = await opened();
    expect(page!.wasOpened).toBe(false);
    const html = await (await fetch(origin)).text();
    expect(html).toContain('src="page.js"');
    expect(html).toContain('<script type="module" src="crowd.js"></script></head>');
    expect(page!.wasOpened).toBe(true);
    for (const name of ['page.js', 'queue.js', 'crowd.js', 'crowd.css'])
      expect((await fetch(`${origin}/${name}`)).status, name).toBe(200);
    expect(await (await fetch(`${origin}/crowd`)).json()).toEqual(standing);
    for (const path of ['/none.js', '/../package.json', '/client/../cli/main.js'])
      expect((await fetch(origin + path)).status, path).toBe(404);
  });

  test('believes no cookie that it has not given: it could name any buyer of the shop', async () => {
    const { origin } = await opened();
    const other = '3f1c1d0e-0000-4000-8000-0123456789ab';
    const cookie = `stockade-demo=${other}`;
    const session = await fetch(`${origin}/session`, { method: 'POST', headers: { cookie } });
    expect(session.headers.get('set-cookie')).not.toContain(other);
    expect((await fetch(`${origin}/orders/7/pay`, { method: 'POST', headers: { cookie } })).status).toBe(404);
  });

  test('pays orders of its own sale only', async () => {
    const { origin } = await opened();
    const session = await fetch(`${origin}/session`, { method: 'POST' });
    const cookie = session.headers.get('set-cookie')!.split(';')[0]!;
    const pay = async (saleId: string) => {
      const order = { buyerId: cookie.split('=')[1]!, saleId };
      const operator = {
        order: async () => ({ code: 'done', order }),
        pay: async () => ({ code: 'done', order }),
      };
      page!.show({ ...shown, operator: operator as unknown as OperatorClient });
      return (await fetch(`${origin}/orders/7/pay`, { method: 'POST', headers: { cookie } })).status;
    };
    expect(await pay('another')).toBe(404);
    expect(await pay('demo-x')).toBe(200);
  });

  test('names each browser as one buyer, who can’t pay another’s order', async () => {
    const { origin } = await opened();
    const session = await fetch(`${origin}/session`, { method: 'POST' });
    const cookie = session.headers.get('set-cookie')!.split(';')[0]!;
    const { token, buyerId } = (await session.json()) as { token: string; buyerId: string };
    const again = await fetch(`${origin}/session`, { method: 'POST', headers: { cookie } });
    const claims = (jwt: string) => JSON.parse(Buffer.from(jwt.split('.')[1]!, 'base64url').toString());
    expect(claims(((await again.json()) as { token: string }).token).sub).toBe(claims(token).sub);
    expect(buyerId).toBe(claims(token).sub);
    expect((await fetch(`${origin}/orders/7/pay`, { method: 'POST', headers: { cookie } })).status).toBe(404);
  });
});
