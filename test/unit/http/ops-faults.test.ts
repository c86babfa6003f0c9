import { expect, test } from 'vitest';
import { StockadeError } from '../../../src/engine/errors.ts';
import { failure, isFault } from '../../../src/http/ops/faults.ts';
import { MetRebuild, StoresAway } from '../../../src/operations/operation-faults.ts';

test.each([
  ['another withdrawal is under way', new StockadeError('busy', 'another withdrawal is under way'), false],
  ['the sale is being rebuilt', new MetRebuild('the change'), false],
  ['a store is away', new StoresAway(['Redis']), true],
  ['a program error', new TypeError('x is undefined'), true],
])('whether the log gets it as a failure of the node: %s', (_, error, isOne) => {
  const reply = failure(error);
  expect([reply.status, isFault(error, reply)]).toEqual([503, isOne]);
});
