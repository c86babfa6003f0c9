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
 * Loads the challenge that CHALLENGE names.
 * @param keys the shop's keys, from which the keys of the built-in proof of work are derived
 * @throws StockadeError if the module can't be loaded, or lacks an export
 */
export async function loadChallenge(
  { challenge, challengeBits }: ChallengeSettings,
  keys: readonly Uint8Array[],
): Promise<Challenge> {
  if (challenge === 'pow') {
    const derived = keys.map((key) => createHmac('sha256', key).update('proof of work').digest());
    return new ProofOfWork(derived, challengeBits);
  }
  return (await loadShopModule('CHALLENGE', challenge, ['issue', 'verify'])) as unknown as Challenge;
}
