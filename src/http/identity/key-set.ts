/**
 * The published keys of buyers' tokens. Who publishes them is trusted to say who a buyer is, and not with a node's memory or
 * time: a wrong address, a broken proxy or a taken-over host may answer with anything.
 *
 *   bytes      counted as they arrive, unpacked; the connection is closed at the one too many
 *   keys       counted before any is looked at: each token is compared with all
 *   redirects  not followed: the operator has named the place
 *   time       one deadline from the first packet to the last byte, so that drops of data do not prolong it
 *
 * What is out of bounds is no key set: nothing is known of the tokens then, and the keys from before stay until they are old.
 */
import { createRemoteJWKSet, customFetch, type JWTVerifyGetKey } from 'jose';
import { StockadeError } from '../../engine/errors.ts';

/** A key with its certificate chain takes some 6 KB, without some 0.5 KB: Google has 3 keys in 2 KB, Entra 8 in 16 KB. */
const MAX_KEY_SET_BYTES = 256 * 1_024;
/** Large issuers publish ten at most: those of today, of yesterday and of tomorrow. */
const MAX_KEYS = 100;

/** @param timeoutMs for one fetch, from its beginning to the last byte */
export function publishedKeys(url: URL, timeoutMs: number): JWTVerifyGetKey {
  return createRemoteJWKSet(url, { timeoutDuration: timeoutMs, [customFetch]: boundedFetch });
}

async function boundedFetch(
  url: string,
  init: { headers: Headers; method: 'GET'; redirect: 'manual'; signal: AbortSignal },
): Promise<Response> {
  const response = await fetch(url, init);
  if (response.status !== 200) {
    await response.body?.cancel();
    throw unusable(`answered ${response.status}, and not 200`);
  }
  const text = await boundedText(response);
  let keys: unknown;
  try {
    ({ keys } = JSON.parse(text) as { keys?: unknown });
  } catch (cause) {
    throw unusable('is no JSON', cause);
  }
  if (Array.isArray(keys) && keys.length > MAX_KEYS) {
    throw unusable(`has ${keys.length} keys; at most ${MAX_KEYS} are read`);
  }
  return new Response(text);
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop cancels the stream, and with it the connection.
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > MAX_KEY_SET_BYTES) throw unusable(`is longer than ${MAX_KEY_SET_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function unusable(what: string, cause?: unknown): StockadeError {
  return new StockadeError('key_set_unusable', `the key set of JWT_JWKS_URL ${what}`, { cause });
}
