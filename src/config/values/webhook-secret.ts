/** The secret of the webhook, in either of two forms. */
import { secret } from './schemas.ts';
import type { Secret } from './secret.ts';

/** Marks a secret whose key is in base64, as tools for Standard Webhooks write it. */
const PREFIX = 'whsec_';
const LEAST_CHARACTERS = 16;
/** By the specification. */
const [LEAST_BYTES, MOST_BYTES] = [24, 64];
const ERROR = `must have at least ${LEAST_CHARACTERS} characters; after ${PREFIX}, the base64 of ${LEAST_BYTES} to ${MOST_BYTES} bytes`;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export const webhookSecret = secret(LEAST_CHARACTERS).refine((value) => isSound(value), { error: ERROR });

function isSound(value: Secret): boolean {
  const text = value.reveal();
  if (!text.startsWith(PREFIX)) return true;
  const bytes = webhookKey(text).length;
  return BASE64.test(text.slice(PREFIX.length)) && bytes >= LEAST_BYTES && bytes <= MOST_BYTES;
}

/** The key of the signature: the bytes of the base64 after the prefix; without the prefix those of the text. */
export function webhookKey(text: string): Buffer {
  return text.startsWith(PREFIX) ? Buffer.from(text.slice(PREFIX.length), 'base64') : Buffer.from(text);
}
