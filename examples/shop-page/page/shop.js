/** The shop as the page reaches it: its sale, its node, and who the buyer is. */
import { BuyerClient } from './client/index.js';

/** How long before its end a token is renewed. */
const MARGIN_MS = 30_000;
/** The shop's server tells its time in whole seconds. A visitor's clock that differs by less than this is taken for right. */
const CLOCK_STEP_MS = 2_000;

export const { shopUrl, saleId } = await (await fetch('config')).json();

let session;
/** The request for a session that is under way. */
let opening;
/** Whether the shop's server did not know this browser when the page was loaded. */
let isNew;
let buyer;
let clockErrorMs = 0;

async function authorization() {
  if (!session || performance.now() > session.until) {
    // Two requests of a browser that has no cookie yet would make two buyers.
    opening ??= openSession().finally(() => {
      opening = undefined;
    });
    const { token } = await opening;
    return { authorization: `Bearer ${token}` };
  }
  return { authorization: `Bearer ${session.token}` };
}

async function openSession() {
  const answer = await fetch('session', { method: 'POST' });
  const { token, seconds, ...told } = await answer.json();
  isNew ??= told.isNew === true;
  buyer = told.buyerId;
  const error = Date.now() - Date.parse(answer.headers.get('date'));
  clockErrorMs = Math.abs(error) > CLOCK_STEP_MS ? error : 0;
  session = { token, until: performance.now() + seconds * 1_000 - MARGIN_MS };
  return session;
}

export const client = new BuyerClient({ url: shopUrl, headers: authorization, deadlineMs: 5_000 });

/** A buyer who was new when the page was loaded had no place and no order then. `false` if the shop's server can't be asked. */
export async function wasNew() {
  await authorization().catch(console.warn);
  return isNew ?? false;
}

/** As the node knows the buyer; `undefined` before the first request in the buyer's name. */
export const buyerId = () => buyer;

/** The next request gets a new token. */
export function forgetSession() {
  session = undefined;
}

/** The time by the shop's clock: an offer ends by it, however wrong the visitor's clock is. */
export function now() {
  return Date.now() - clockErrorMs;
}
