import { describe, expect, it } from 'vitest';
import { type Linked, LinkedList } from '../../../src/lib/linked-list.ts';

class Item implements Linked<Item> {
  before: Item | undefined = undefined;
  after: Item | undefined = undefined;
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

function listOf(...names: string[]): [LinkedList<Item>, Item[]] {
  const list = new LinkedList<Item>();
  const items = names.map((name) => new Item(name));
  for (const item of items) list.push(item);
  return [list, items];
}

/** Empties the list from the front. */
function drained(list: LinkedList<Item>): string[] {
  const names: string[] = [];
  for (let first = list.first; first; first = list.first) {
    names.push(first.name);
    list.remove(first);
  }
  return names;
}

describe('a linked list', () => {
  it('has no first item while it is empty', () => {
    const [list] = listOf();
    expect(list.first).toBeUndefined();
    expect(list.length).toBe(0);
  });

  it('keeps the order in which items came', () => {
    const [list] = listOf('a', 'b', 'c');
    expect(list.length).toBe(3);
    expect(drained(list)).toEqual(['a', 'b', 'c']);
    expect(list.length).toBe(0);
  });

  it.each([
    ['first', 0, ['b', 'c']],
    ['middle', 1, ['a', 'c']],
    ['last', 2, ['a', 'b']],
  ])('removes the %s item', (_, at, left) => {
    const [list, items] = listOf('a', 'b', 'c');
    list.remove(items[at]!);
    list.push(new Item('d'));
    expect(drained(list)).toEqual([...left, 'd']);
  });

  it('lets go of the neighbours of a removed item', () => {
    const [list, items] = listOf('a', 'b', 'c');
    list.remove(items[1]!);
    expect(items[1]).toMatchObject({ before: undefined, after: undefined });
  });

  it('takes a removed item again', () => {
    const [list, [a]] = listOf('a', 'b');
    list.remove(a!);
    list.push(a!);
    expect(drained(list)).toEqual(['b', 'a']);
  });
});
