/** A bug beside the lane leaves no purchase without an answer. */
import { describe, expect, it, vi } from 'vitest';
import { settledTurns, turn } from '../../../../support/engine/frozen-time.ts';
import {
  advance,
  board,
  buy,
  events,
  faults,
  grew,
  parts,
  stageLane,
  takes,
} from '../../../../support/engine/lane-stage.ts';
import { codesOf } from '../../../../support/engine/purchases.ts';
import { SHORT, TAKEN } from '../../../../support/engine/scripted-takes.ts';

stageLane();

describe('a bug', () => {
  const bug = () => {
    throw new Error('a bug');
  };

  it.each<[string, () => void, () => void]>([
    ['where batches are counted', () => (events.onBatch = bug), () => delete events.onBatch],
    ['where logs are told to have grown', () => grew.mockImplementation(bug), () => grew.mockReset()],
    ['where orders are named', () => (parts.nextOrderId = bug), () => (parts.nextOrderId = () => '77')],
  ])('%s leaves no purchase without an answer', async (_, plant, repair) => {
    plant();
    const anna = buy('anna');
    await settledTurns();
    for (const ask of takes.asks) await ask.serve([TAKEN], { seq: 1 });
    advance(1);
    expect(anna.told).toHaveLength(1);
    expect(faults).toHaveLength(1);
    repair();
    const asked = takes.asks.length;
    buy('ben');
    await turn();
    await settledTurns();
    expect(takes.asks).toHaveLength(asked + 1);
  });

  it('in the board leaves no purchase without an answer', async () => {
    const close = vi.spyOn(board, 'close').mockImplementation(() => {
      throw new Error('a bug');
    });
    const anna = buy('anna');
    await (await takes.next()).serve([SHORT]);
    await (await takes.next()).serve([SHORT], { total: 0 });
    expect(anna.told).toHaveLength(1);
    expect(faults).toHaveLength(1);
    close.mockRestore();
    buy('ben');
    expect((await takes.next()).buyers).toEqual(['ben']);
  });

  it('in the board, before a batch was made, does not stop the lane for ever', async () => {
    const isSoldOut = vi.spyOn(board, 'isSoldOut').mockImplementationOnce(() => {
      throw new Error('a bug');
    });
    const anna = buy('anna');
    await settledTurns();
    expect(isSoldOut).toHaveBeenCalled();
    buy('ben');
    await settledTurns();
    expect(takes.asks.flatMap((ask) => ask.buyers)).toEqual(['anna', 'ben']);
    expect(faults).toHaveLength(1);
    expect(codesOf([anna])).toEqual(['waits']);
  });
});
