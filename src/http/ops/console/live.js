// Reads the pictures of the node, as long as the page is visible, and connects again when the stream ends.
import { open, Refused } from './api.js';

const RETRY_MS = [1_000, 2_000, 5_000, 10_000];

export class Live {
  #onPicture;
  #onState;
  #path;
  #abort = new AbortController();
  #failures = 0;
  #timer;

  /**
   * @param {(picture: object) => void} onPicture
   * @param {(state: 'live' | 'lost', why: string) => void} onState
   */
  constructor(onPicture, onState) {
    this.#onPicture = onPicture;
    this.#onState = onState;
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) this.#close();
      else if (this.#path) this.#connect();
    });
  }

  /** Reads the pictures at this path from now on. */
  watch(path) {
    if (path === this.#path) return;
    this.#path = path;
    this.#failures = 0;
    this.#connect();
  }

  stop() {
    this.#path = undefined;
    this.#close();
  }

  #close() {
    clearTimeout(this.#timer);
    this.#abort.abort();
  }

  async #connect() {
    this.#close();
    const abort = new AbortController();
    this.#abort = abort;
    try {
      await this.#read(await open(this.#path, abort.signal), abort.signal);
      if (!abort.signal.aborted) this.#retry('The stream has ended');
    } catch (error) {
      if (abort.signal.aborted || (error instanceof Refused && error.status === 401)) return;
      this.#retry(error instanceof Refused ? error.message : 'The connection is lost');
    }
  }

  #retry(why) {
    const wait = RETRY_MS[Math.min(this.#failures++, RETRY_MS.length - 1)];
    this.#onState('lost', why);
    this.#timer = setTimeout(() => this.#connect(), wait);
  }

  async #read(body, signal) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done || signal.aborted) return;
      text += value;
      const events = text.split('\n\n');
      text = events.pop();
      // Only the newest matters if several have arrived at once.
      const data = events
        .at(-1)
        ?.split('\n')
        .find((line) => line.startsWith('data: '));
      if (data === undefined) continue;
      this.#failures = 0;
      this.#onState('live', '');
      this.#onPicture(JSON.parse(data.slice('data: '.length)));
    }
  }
}
