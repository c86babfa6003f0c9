import { createHmac } from 'node:crypto';
import type { Challenge } from '../../admission/challenge.ts';
import { ProofOfWork } from '../../admission/proof-of-work.ts';
import { loadShopModule } from './shop-module.ts';

export interface ChallengeSettings {
  /** `pow`, or the file of a module. */
  readonly challenge: string;
  readonly challengeBits: number;
}

/**
 * The challenge that CHALLENGE names.
 * @param keys the shop's own, from which those of the built-in one are made
 * @throws StockadeError if the module can't be loaded, or does not export what it must
 */
export async function loadChallenge(
  { challenge, challengeBits }: ChallengeSettings,
  keys: readonly Uint8Array[],
): Promise<Challenge> {
  if (challenge === 'pow') {
    const ofWork = keys.map((key) => createHmac('sha256', key).update('proof of work').digest());
    return new ProofOfWork(ofWork, challengeBits);
  }
  return (await loadShopModule('CHALLENGE', challenge, ['issue', 'verify'])) as unknown as Challenge;
}
