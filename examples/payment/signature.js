/** The signature of the provider's webhooks: `Stripe-Signature: t=<seconds>,v1=<hex>,v1=<hex>`, an HMAC-SHA256 over `t.body`. */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** An older request may be one that somebody has recorded and sends again. */
const TOLERANCE_S = 300;
const SECONDS = /^\d{1,12}$/;
const SHA256 = /^[0-9a-f]{64}$/;

/**
 * @param {string | undefined} header
 * @param {Buffer} body the bytes as they came: JSON that was parsed and written again may differ
 * @param {readonly string[]} secrets while a secret is replaced, the old one and the new one
 * @param {number} nowMs
 */
export function isSigned(header, body, secrets, nowMs = Date.now()) {
  const fields = (header ?? '').split(',').map((field) => field.trim().split('=', 2));
  const valuesOf = (name) => fields.filter(([key]) => key === name).map(([, value = '']) => value);
  const [at, ...others] = valuesOf('t');
  if (at === undefined || others.length > 0 || !SECONDS.test(at)) return false;
  if (Math.abs(nowMs / 1_000 - Number(at)) > TOLERANCE_S) return false;
  const given = valuesOf('v1').filter((hex) => SHA256.test(hex));
  return secrets.some((secret) => {
    const expected = mac(secret, at, body);
    return given.some((hex) => timingSafeEqual(Buffer.from(hex, 'hex'), expected));
  });
}

/** The header of a request that is sent now, with one signature for each secret. The stand-in provider sends it. */
export function signed(body, secrets, nowMs = Date.now()) {
  const at = String(Math.floor(nowMs / 1_000));
  return [`t=${at}`, ...secrets.map((secret) => `v1=${mac(secret, at, body).toString('hex')}`)].join();
}

function mac(secret, at, body) {
  return createHmac('sha256', secret).update(`${at}.`).update(body).digest();
}
