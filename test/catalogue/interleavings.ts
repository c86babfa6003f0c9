/** The interleavings that tell right from wrong, each written once and run on every strategy that it concerns. */
import type { Outcome, Point } from '../../src/catalogue/contract.ts';
import type { Lab, LabNode } from './lab.ts';

/**
 * S2: `count` buyers ask at once, and all of them stand at `point` at the same time, as far as the strategy lets them;
 * then all go on.
 */
export async function allAtOnce(
  lab: Lab,
  nodes: readonly LabNode[],
  buyerIds: readonly string[],
  point: Point,
): Promise<Outcome[]> {
  const calls = buyerIds.map((buyerId, i) => nodes[i % nodes.length]!.begin(buyerId, point));
  await lab.atRest(...calls);
  return lab.finish(...calls);
}

export function buyers(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `buyer-${i}`);
}
