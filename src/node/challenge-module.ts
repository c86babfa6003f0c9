import { createHmac } from 'node:crypto';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Challenge } from '../admission/challenge.ts';
import { ProofOfWork } from '../admission/proof-of-work.ts';
import { StockadeError } from '../engine/errors.ts';

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
  const path = resolve(challenge);
  const module = await import(pathToFileURL(path).href).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new StockadeError('invalid_config', `CHALLENGE names ${path}, which can't be loaded: ${why}`, {
      cause,
    });
  });
  const { issue, verify } = module;
  if (typeof issue === 'function' && typeof verify === 'function') return { issue, verify };
  throw new StockadeError(
    'invalid_config',
    `CHALLENGE names ${path}, which must export functions \`issue\` and \`verify\`; it exports ${Object.keys(module).join(', ') || 'nothing'}`,
  );
}
