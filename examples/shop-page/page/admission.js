/** Gets a purchase token for a sale that requires one, and solves the challenge for it if the shop asks for that. */
const BATCH = 256;
const WORD_BITS = 32;

/**
 * Asks with the purchase token that the page has. If the sale requires another one, it gets that, and asks again.
 * @param ask what asks the node, given the token if there is one
 * @param admitting called before a token is got
 */
export async function admitted(client, saleId, ask, admitting) {
  const name = `token:${saleId}`;
  const outcome = await ask(sessionStorage.getItem(name) ?? undefined);
  if (outcome.code !== 'token_required' && outcome.code !== 'token_invalid') return outcome;
  admitting();
  const issued = await purchaseToken(client, saleId);
  if (issued.code !== 'issued') return issued;
  sessionStorage.setItem(name, issued.token);
  return ask(issued.token);
}

/** @returns {Promise<{ code: string, token?: string }>} `issued` with the token, or the refusal */
async function purchaseToken(client, saleId) {
  const outcome = await client.purchaseToken(saleId);
  if (outcome.code !== 'challenge_required' || outcome.challenge?.type !== 'proof-of-work') return outcome;
  return client.purchaseToken(saleId, await solved(outcome.challenge));
}

/** Looks for a number whose hash begins with `bits` zero bits. */
async function solved({ seed, bits }) {
  const text = new TextEncoder();
  for (let from = 0; ; from += BATCH) {
    const numbers = Array.from({ length: BATCH }, (_, i) => String(from + i));
    const hashes = await Promise.all(
      numbers.map((number) => crypto.subtle.digest('SHA-256', text.encode(`${seed}.${number}`))),
    );
    const found = hashes.findIndex((hash) => new DataView(hash).getUint32(0) >>> (WORD_BITS - bits) === 0);
    if (found >= 0) return { seed, solution: numbers[found] };
  }
}
