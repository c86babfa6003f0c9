// The entry: signs in, shows the view that the address names, and passes each picture to it.
import { onRefusedToken, open, signIn, signOut } from './api.js';
import { closeAll, labelled } from './dialogs.js';
import { el, say, setAttribute, setText } from './dom.js';
import { Figures } from './figures.js';
import { addressed } from './hash.js';
import { Live, NODE_ONLY } from './live.js';
import { SaleView } from './sale.js';
import { SalesView } from './sales.js';
import { eventsView, NodesView, refundsView } from './shop.js';
import { forgetReports } from './verify.js';

const top = document.getElementById('top');
const figuresSection = document.getElementById('figures');
const main = document.getElementById('main');
const liveMark = document.getElementById('live-mark');
const liveText = document.getElementById('live');
let figures;
let view;
let isSignedIn = false;
/** The last picture, and the stream that it came from. */
let last;

const live = new Live(
  (picture) => {
    if (!isSignedIn) return;
    last = { picture, stream: view.stream };
    figures.set(picture);
    view.set(picture);
  },
  (state, why) => {
    setAttribute(liveMark, 'class', `live-mark ${state}`);
    setText(liveText, state === 'live' ? 'Live' : `Not live: ${why}`);
  },
);

function showView() {
  if (!isSignedIn) return;
  const where = addressed();
  view = viewOf(where);
  main.replaceChildren(view.element);
  for (const link of top.querySelectorAll('nav a')) {
    const isHere = link.dataset.view === (where.view === 'sale' ? 'sales' : where.view);
    if (isHere) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.title = `${where.saleId ?? main.querySelector('h1').textContent} – Stockade console`;
  // Another tab of the same sale need not wait for the next second.
  if (last?.stream === view.stream) view.set(last.picture);
  live.watch(view.stream);
}

function viewOf(where) {
  if (where.view === 'sale') return new SaleView(where);
  if (where.view === 'refunds') return refundsView();
  if (where.view === 'events') return eventsView();
  if (where.view === 'nodes') return new NodesView();
  return new SalesView(where);
}

function showLogin(problem = '') {
  isSignedIn = false;
  last = undefined;
  live.stop();
  signOut();
  forgetReports();
  closeAll();
  top.hidden = true;
  figuresSection.hidden = true;
  figuresSection.replaceChildren();
  document.title = 'Sign in – Stockade console';
  const token = el('input', {
    id: 'token',
    type: 'password',
    autocomplete: 'off',
    spellcheck: 'false',
    required: true,
  });
  const name = el('input', { id: 'operator', autocomplete: 'off', maxlength: 200, pattern: '[ -~]*' });
  const refused = el('p', { class: 'refused', role: 'alert' }, problem);
  const button = el('button', { type: 'submit', class: 'main' }, 'Sign in');
  const form = el(
    'form',
    { class: 'login', 'aria-labelledby': 'login-title' },
    el('h1', { id: 'login-title' }, 'Stockade console'),
    labelled(
      token,
      'Ops token',
      'OPS_TOKEN of the node, or the text in DATA_DIR/ops-token. It stays in the memory of this page: a reload asks for it again.',
    ),
    labelled(name, 'Your name (optional)', 'The ledger notes it with what you change.'),
    refused,
    button,
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    button.disabled = true;
    setText(refused, '');
    signIn(token.value.trim(), name.value.trim());
    try {
      await tryToken();
      token.value = '';
      showConsole();
    } catch (error) {
      setText(refused, error.status === 401 ? 'The node does not accept this token.' : error.message);
      token.focus();
    } finally {
      button.disabled = false;
    }
  });
  main.replaceChildren(form);
  token.focus();
}

/** @throws Refused if the node does not accept the token */
async function tryToken() {
  const abort = new AbortController();
  await open(NODE_ONLY, abort.signal);
  abort.abort();
}

function showConsole() {
  isSignedIn = true;
  top.hidden = false;
  figuresSection.hidden = false;
  figures = new Figures(figuresSection);
  setText(liveText, 'Connecting …');
  showView();
  main.focus({ preventScroll: true });
}

onRefusedToken(() => {
  if (isSignedIn)
    showLogin(
      'Signed out: the node does not accept this token any more. Sign in with the token that it has now.',
    );
});
document.getElementById('sign-out').addEventListener('click', () => {
  showLogin();
  say('Signed out.');
});
addEventListener('hashchange', () => {
  if (!isSignedIn) return;
  // A dialog belongs to the view that it was opened in.
  closeAll();
  const before = document.activeElement?.id;
  showView();
  // Where the reader was, if the new view has that too.
  const same = before && main.querySelector(`#${CSS.escape(before)}`);
  (same || main.querySelector('.tabs [aria-current]') || main).focus({ preventScroll: true });
});
showLogin();
