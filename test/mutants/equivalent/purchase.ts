/** Equivalent mutants of src/engine/purchase (../equivalent.ts). */
import type { Equivalent } from '../equivalent.ts';

const CLEARED = 'clear() of an empty map changes nothing: the check only saves V8 a new table';

export const PURCHASE: readonly Equivalent[] = [
  {
    file: 'src/engine/purchase/commit-waiters.ts',
    mutator: 'EqualityOperator',
    original: 'seq > this.#watermark',
    replacement: 'seq >= this.#watermark',
    why: 'all purchases up to the present watermark were settled when it came: settling up to it again finds none',
  },
  ...['this.#rejected.size', 'this.#entries.size'].flatMap((size) => [
    {
      file: 'src/engine/purchase/commit-waiters.ts',
      mutator: 'ConditionalExpression',
      original: `${size} > 0`,
      replacement: 'true',
      why: CLEARED,
    },
    {
      file: 'src/engine/purchase/commit-waiters.ts',
      mutator: 'EqualityOperator',
      original: `${size} > 0`,
      replacement: `${size} >= 0`,
      why: CLEARED,
    },
  ]),
  {
    file: 'src/engine/purchase/lane.ts',
    mutator: 'ConditionalExpression',
    original: 'purchases.length === 0',
    replacement: 'false',
    why: 'the filter of an empty list is an empty list: the check only saves an array',
  },
  {
    file: 'src/engine/purchase/live-sale.ts',
    mutator: 'ConditionalExpression',
    original: 'lane.isWaiting',
    replacement: 'true',
    why: 'a lane that runs already, or has no work, returns from `run` at once: the check only saves that call',
  },
  {
    file: 'src/engine/purchase/log-hints.ts',
    mutator: 'ConditionalExpression',
    original: 'this.#grown.size === 0',
    replacement: 'true',
    why: 'the first of several calls in the same tick sends all hints and empties the map: the others send nothing',
  },
  {
    file: 'src/engine/purchase/refuse.ts',
    mutator: 'ConditionalExpression',
    original: '!refusal && !precheck',
    replacement: 'false',
    why: 'the last line then makes an object with the same fields as LET_IN: the check only saves that object',
  },
];
