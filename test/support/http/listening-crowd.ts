import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface CrowdSeen {
  /** States of the sale that they were sent, in all. */
  readonly events: number;
  readonly bytes: number;
  /** Those who were told that the sale is over. */
  readonly ended: number;
  readonly closed: number;
  readonly refused: number;
  /** How many were last told that so many units are left, by that number. */
  readonly left: Readonly<Record<string, number>>;
}

/** Many who listen to one sale. They are in a process of their own, so that they do not delay what else the test does. */
export class ListeningCrowd implements Disposable {
  readonly #process: ChildProcess;

  constructor(url: string, saleId: string, count: number) {
    const program = fileURLToPath(new URL('./listening-program.mjs', import.meta.url));
    this.#process = fork(program, [new URL(url).port, saleId, String(count)]);
  }

  async seen(): Promise<CrowdSeen> {
    this.#process.send({});
    const [seen] = await once(this.#process, 'message');
    return seen;
  }

  [Symbol.dispose](): void {
    this.#process.disconnect();
  }
}
