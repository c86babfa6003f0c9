// Requests to the ops port. The token is in a variable of this module, and nowhere else: a reload forgets it.
const MAY_BE_MADE = 'The change may have been made: check that before you repeat it';

let token = '';
let operator = '';
let refusedToken = () => {};

export function signIn(newToken, newOperator) {
  token = newToken;
  operator = newOperator;
}

export function signOut() {
  token = '';
  operator = '';
}

/** @param {() => void} callback called when the node does not accept the token any more */
export function onRefusedToken(callback) {
  refusedToken = callback;
}

/** The address of a sale, for requests. */
export const saleUrl = (saleId) => `v1/sales/${encodeURIComponent(saleId)}`;

/** A title begins with a capital letter, a detail mostly does not. */
const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** The node's answer to a request that it did not carry out, or a reason why there is no answer. */
export class Refused extends Error {
  constructor({ status = 0, code = '', title = 'The request failed', detail }) {
    super([title, detail].filter(Boolean).map(sentence).join('. '));
    this.status = status;
    this.code = code;
  }
}

/** @returns the JSON of the answer. @throws Refused */
export async function call(method, path, body) {
  const answer = await send(method, path, body);
  return answer.json();
}

/** As `call`, for a `POST` that changes nothing: without an answer, there is nothing to check. */
export async function look(path) {
  const answer = await send('POST', path, undefined, undefined, false);
  return answer.json();
}

/** An answer that goes on until the signal aborts. @throws Refused */
export async function open(path, signal) {
  const answer = await send('GET', path, undefined, signal);
  return answer.body;
}

async function send(method, path, body, signal, changes = method !== 'GET') {
  const headers = { authorization: `Bearer ${token}` };
  if (operator !== '') headers['x-operator'] = operator;
  if (body !== undefined) headers['content-type'] = 'application/json';
  const request = { method, headers, signal, cache: 'no-store', credentials: 'omit' };
  if (body !== undefined) request.body = JSON.stringify(body);
  let answer;
  try {
    answer = await fetch(path, request);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused({ title: 'The node does not answer', ...(changes && { detail: MAY_BE_MADE }) });
  }
  if (answer.ok) return answer;
  const refused = new Refused(await problemOf(answer));
  if (answer.status === 401) refusedToken();
  throw refused;
}

async function problemOf(answer) {
  const status = answer.status;
  try {
    return { status, ...(await answer.json()) };
  } catch {
    return { status, title: `The node answered ${status}` };
  }
}
