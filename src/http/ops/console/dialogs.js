// Dialogs that ask before something is changed. They say what will happen, in numbers, as far as it can be known.
import { el, say, setText } from './dom.js';

/** The field of each dialog whose change is noted with a reason. */
export const REASON = { name: 'reason', label: 'Reason (for the ledger)', maxlength: 500 };

let dialogs = 0;

/**
 * @param {object} options
 * @param {string} options.title
 * @param {string} options.go the word on the button that does it
 * @param {(values: Record<string, string>) => readonly string[]} options.lines what will happen, for the present fields
 * @param {readonly Field[]} [options.fields]
 * @param {string} [options.typed] what the operator must type, because the action can't be undone
 * @param {(values: Record<string, string>) => Promise<string>} options.run does it. @returns what was done, in a sentence
 *
 * @typedef {{ name: string, label: string, type?: string, value?: string, hint?: string, required?: boolean, min?: number, max?: number, maxlength?: number, options?: Record<string, string> }} Field
 *
 * `options`: what can be chosen, by value.
 */
export function ask({ title, go, lines, fields = [], typed, run }) {
  const id = `dialog-${++dialogs}`;
  const inputs = new Map(fields.map((field) => [field.name, inputOf(`${id}-${field.name}`, field)]));
  const typedInput = el('input', { id: `${id}-typed`, autocomplete: 'off', spellcheck: 'false' });
  const what = el('ul', { class: 'what' });
  const refused = el('p', { class: 'refused', role: 'alert' });
  const cancel = el('button', { type: 'button', class: 'quiet' }, 'Cancel');
  const submit = el('button', { type: 'submit', class: typed === undefined ? 'main' : 'main grave' }, go);
  const values = () => Object.fromEntries([...inputs].map(([name, { value }]) => [name, value.trim()]));
  // The browser will not send a number that its field does not allow, so nothing is said about it.
  const possible = ([name, { value, validity }]) => [name, validity.valid ? value.trim() : ''];
  const tell = () => {
    const told = lines(Object.fromEntries([...inputs].map(possible)));
    what.replaceChildren(...told.map((line) => el('li', {}, line)));
  };
  const form = el(
    'form',
    { on: { input: tell, submit: (event) => void send(event) } },
    el('h2', { id: `${id}-title` }, title),
    ...fields.map((field) => labelled(inputs.get(field.name), field.label, field.hint)),
    what,
    typed === undefined ? undefined : labelled(typedInput, `This can’t be undone. Type ${typed} to go on`),
    refused,
    el('div', { class: 'buttons' }, cancel, submit),
  );
  const dialog = el('dialog', { 'aria-labelledby': `${id}-title` }, form);
  cancel.addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => dialog.remove());

  async function send(event) {
    event.preventDefault();
    if (typed !== undefined && typedInput.value.trim() !== typed) {
      setText(refused, `Type ${typed} exactly.`);
      typedInput.focus();
      return;
    }
    submit.disabled = true;
    setText(submit, 'Working …');
    // What was sent can't be called back.
    setText(cancel, 'Close');
    setText(refused, '');
    try {
      say(await run(values()));
      dialog.close();
    } catch (error) {
      setText(refused, error.message);
      if (!dialog.open) say(`${title}: ${error.message}`);
    } finally {
      setText(cancel, 'Cancel');
      submit.disabled = false;
      setText(submit, go);
    }
  }

  tell();
  document.body.append(dialog);
  dialog.showModal();
}

/**
 * Buttons that open dialogs. What is shown may be some seconds old, so between the click and its dialog the node is asked for the newest
 * numbers. Until then further clicks open nothing, and a view that was left meanwhile opens nothing either.
 * @param {() => Promise<any>} read
 * @param {() => any} older what a dialog gets if the node can't answer now: without numbers, which it then says can't be read
 * @param {(error: Error) => void} failed told why there is no dialog
 * @returns {(button: HTMLElement, open: (now: any, said: string) => unknown) => void} `said`: what the button said when it was pressed.
 *   It decides what is asked, not what the sale has become since
 */
export function opener(read, older, failed) {
  const readNow = () =>
    read().catch((error) => {
      if (error.status === 401 || error.status === 404) throw error;
      return older();
    });
  let isReading = false;
  return (button, open) =>
    button.addEventListener('click', async () => {
      if (isReading) return;
      isReading = true;
      const said = button.textContent;
      try {
        const now = await readNow();
        if (button.isConnected) await open(now, said);
      } catch (error) {
        if (button.isConnected) failed(error);
      } finally {
        isReading = false;
      }
    });
}

/** Closes all dialogs. What is under way goes on, and says how it ended. */
export function closeAll() {
  for (const dialog of document.querySelectorAll('dialog')) dialog.close();
}

/** A dialog that only shows something. */
export function show(title, ...content) {
  const id = `dialog-${++dialogs}`;
  const close = el('button', { type: 'button', class: 'main' }, 'Close');
  const dialog = el(
    'dialog',
    { 'aria-labelledby': id },
    el('h2', { id }, title),
    ...content,
    el('div', { class: 'buttons' }, close),
  );
  close.addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

export function labelled(input, label, hint) {
  const hintId = `${input.id}-hint`;
  if (hint !== undefined) input.setAttribute('aria-describedby', hintId);
  return el(
    'div',
    { class: 'field' },
    el('label', { for: input.id }, label),
    input,
    hint === undefined ? undefined : el('p', { id: hintId, class: 'hint' }, hint),
  );
}

function inputOf(id, { name, type = 'text', value = '', options, label: _, hint: __, ...attributes }) {
  const input = options
    ? el(
        'select',
        { id, name },
        ...Object.entries(options).map(([choice, text]) => el('option', { value: choice }, text)),
      )
    : el('input', { id, name, type, autocomplete: 'off', ...attributes });
  input.value = value;
  return input;
}
