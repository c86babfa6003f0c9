import { describe, expect, it } from 'vitest';
import type {
  LogEntry,
  LogPosition,
  LogRead,
  Rejection,
  Watermark,
} from '../../../../src/engine/contract.ts';
import { batchOf, newestOf, watermarksOf } from '../../../../src/sync/apply/batch.ts';

const place = (saleId: string, segment = 0): LogPosition => ({
  saleId,
  segment,
  generation: 1,
  seq: 0,
  tail: '',
});

/** The entries with so many orders each, of two units each. */
function read(position: LogPosition, sizes: readonly number[]): LogRead {
  let ordersSoFar = 0;
  const entries = sizes.map((size, i): LogEntry => {
    const nameOf = (order: number) => `${position.saleId}-${position.segment}-${i + 1}-${order}`;
    const orders = Array.from({ length: size }, (_, n) => ({
      orderId: nameOf(n),
      buyerId: 'buyer',
      quantity: 2,
      key: '',
    }));
    ordersSoFar += size;
    return { seq: i + 1, previous: i === 0 ? '' : `tail-${i}`, tail: `tail-${i + 1}`, ordersSoFar, orders };
  });
  return { position, head: undefined, entries };
}

/** Where each slice is, and how many entries it has. */
const shapeOf = ({ slices }: ReturnType<typeof batchOf>) =>
  slices.map(({ from, entries }) => `${from.saleId}/${from.segment}: ${entries.length}`);

describe('a batch', () => {
  it('says where its slices begin and end, and how many units they sell', () => {
    const position = place('sale');
    const whole = read(position, [2, 1]);
    expect(batchOf([whole], 10)).toEqual({
      orders: 3,
      slices: [
        { from: position, to: { ...position, seq: 2, tail: 'tail-2' }, entries: whole.entries, units: 6 },
      ],
    });
  });

  it.each([
    ['all that fit exactly', [2, 3], 5, ['sale/0: 2']],
    ['none that is too much, and none behind it', [2, 4, 1], 5, ['sale/0: 1']],
    ['the first one in any case', [9, 1], 5, ['sale/0: 1']],
    ['none of an empty log', [], 5, []],
  ])('takes whole entries: %s', (_, sizes, most, shape) => {
    const batch = batchOf([read(place('sale'), sizes)], most);
    expect(shapeOf(batch)).toEqual(shape);
    expect(batch.slices.every(({ to, entries }) => to.seq === entries.length)).toBe(true);
  });

  it('goes on with the next log, from which a smaller entry may still fit', () => {
    const logs = [read(place('a'), [3, 3]), read(place('b'), [4]), read(place('c'), [1, 1])];
    const batch = batchOf(logs, 5);
    expect(shapeOf(batch)).toEqual(['a/0: 1', 'c/0: 2']);
    expect(batch.orders).toBe(5);
  });

  it('is sorted by sale and segment, in the order of the database', () => {
    const places = [place('b', 10), place('a', 1), place('Z'), place('b', 2), place('a')];
    const sorted = ['Z/0: 1', 'a/0: 1', 'a/1: 1', 'b/2: 1', 'b/10: 1'];
    for (const logs of [places, places.toReversed()])
      expect(
        shapeOf(
          batchOf(
            logs.map((at) => read(at, [1])),
            9,
          ),
        ),
      ).toEqual(sorted);
  });
});

describe('the watermarks of a batch', () => {
  const batch = batchOf([read(place('a'), [1, 2]), read(place('b', 3), [1])], 9);
  const marks = [
    { ...place('a'), seq: 2, tail: undefined, orders: 3, tails: ['tail-1', 'tail-2'], rejected: [] },
    { ...place('b', 3), seq: 1, tail: undefined, orders: 1, tails: ['tail-1'], rejected: [] },
  ];

  it('say how far each log is applied', () => {
    expect(watermarksOf(batch, new Map())).toEqual(marks);
  });

  it('name the rejected orders, each in its own log', () => {
    const rejections = ['a-0-2-1', 'b-3-1-0'].map((orderId): Rejection => ({ orderId, reason: 'stock' }));
    const rejected = new Map(rejections.map((one) => [one.orderId, one]));
    expect(watermarksOf(batch, rejected)).toEqual([
      { ...marks[0], rejected: [rejections[0]] },
      { ...marks[1], rejected: [rejections[1]] },
    ]);
  });
});

describe('of watermarks that were not announced', () => {
  const mark = (seq: number, rejected: string[] = [], at: Partial<LogPosition> = {}): Watermark => ({
    ...place('a'),
    ...at,
    seq,
    orders: seq,
    rejected: rejected.map((orderId) => ({ orderId, reason: 'limit' })),
  });

  it('the newest of each segment is kept, with the rejections of all', () => {
    expect(newestOf([mark(1, ['1']), mark(2), mark(3, ['2', '3']), mark(4)])).toEqual([
      mark(4, ['1', '2', '3']),
    ]);
    expect(newestOf([mark(1), mark(2)])).toEqual([mark(2)]);
  });

  it('those of other sales, segments and generations are kept apart', () => {
    const others = [{}, { saleId: 'b' }, { segment: 1 }, { generation: 2 }].map((at) => mark(1, ['1'], at));
    expect(newestOf(others)).toEqual(others);
  });
});
