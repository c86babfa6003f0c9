// Reads the pictures of the node, as long as the page is visible, and connects again when the stream ends.
import { open, Refused } from './api.js';

/** The stream of views that show no sale: the node's own figures. */
export const NODE_ONLY = 'v1/console/events?limit=0';

const RETRY_MS = [1_000, 2_000, 5_000, 10_000];
/** A picture comes each second. After such a silence the node or the connection hangs, although nobody has closed it. */
const SILENT_MS = 5_000;

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
      if (!this.#path) return;
      if (!document.hidden) return void this.#connect();
      this.#close();
      // What is shown grows old meanwhile.
      this.#onState('lost', 'Connecting …');
    });
    // The pause before the next attempt may be long, and the browser knows sooner that it is online.
    addEventListener('online', () => {
      if (this.#path && !document.hidden && this.#failures > 0) void this.#connect();
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
    this.#expectPicture();
    try {
      await this.#read(await open(this.#path, abort.signal), abort.signal);
      if (!abort.signal.aborted) this.#retry('The stream has ended');
    } catch (error) {
      if (abort.signal.aborted || (error instanceof Refused && error.status === 401)) return;
      this.#retry(error instanceof Refused ? error.message : 'The connection is lost');
    }
  }

  /** From now on, silence is a loss of the connection. */
  #expectPicture() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#abort.abort();
      this.#retry(`No picture has come for ${SILENT_MS / 1_000} s`);
    }, SILENT_MS);
  }

  #retry(why) {
    clearTimeout(this.#timer);
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
      this.#expectPicture();
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
