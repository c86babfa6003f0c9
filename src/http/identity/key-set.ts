/**
 * Fetches the published keys that buyers' tokens are checked with. The publisher is trusted to say who a buyer is, but not
 * with a node's memory or time: a wrong address, a broken proxy or a compromised host may answer with anything. So a fetch
 * has bounds:
 *
 *   bytes      counted after decompression, as they arrive; at the first byte too many the connection is closed
 *   keys       counted before any is used, because each token may be compared with all of them
 *   redirects  not followed: the operator has configured the address
 *   time       one deadline from the first packet to the last byte, so that a slow trickle of data does not prolong it
 *
 * An answer out of bounds is an error. The keys fetched before it stay in use until they are too old.
 */
import {
  createRemoteJWKSet,
  customFetch,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from 'jose';
import { StockadeError } from '../../engine/errors.ts';

/** A key takes about 0.5 KB, and 6 KB with its certificate chain: Google has 3 keys in 2 KB, Entra 8 in 16 KB. */
const MAX_KEY_SET_BYTES = 256 * 1_024;
/** Large issuers publish ten at most: current, former and future ones. */
const MAX_KEYS = 100;

/** @param timeoutMs for one fetch, from its beginning to the last byte */
export function publishedKeys(url: URL, timeoutMs: number): JWTVerifyGetKey {
  return createRemoteJWKSet(url, { timeoutDuration: timeoutMs, [customFetch]: boundedFetch });
}

/**
 * Checks a token with the key that it names by `kid`. If it names none, or several have that name, it is compared with all keys of
 * its algorithm: while keys are changed, a set has an old one and a new one.
 * @throws JOSEError, and the error of the fetch
 */
export async function verifyPublished(
  token: string,
  keys: JWTVerifyGetKey,
  options: JWTVerifyOptions,
): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, keys, options)).payload;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    for await (const key of error) {
      const checked = await jwtVerify(token, key, options).catch(unlessOtherKey);
      if (checked) return checked.payload;
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

/** @returns `undefined` if another key may have signed the token */
function unlessOtherKey(error: unknown): undefined {
  if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
}

async function boundedFetch(
  url: string,
  init: { headers: Headers; method: 'GET'; redirect: 'manual'; signal: AbortSignal },
): Promise<Response> {
  const response = await fetch(url, init);
  if (response.status !== 200) {
    await response.body?.cancel();
    throw unusable(`was answered with status ${response.status} instead of 200`);
  }
  const text = await boundedText(response);
  let keys: unknown;
  try {
    ({ keys } = JSON.parse(text) as { keys?: unknown });
  } catch (cause) {
    throw unusable('is not JSON', cause);
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
