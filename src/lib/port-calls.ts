/** Remote calls over a message port: a name and an argument go over, a result or an error comes back. */
import type { MessagePort, Worker } from 'node:worker_threads';
import { StockadeError } from '../engine/errors.ts';

export type Port = Worker | MessagePort;

type Handlers = Record<string, (argument: never) => unknown>;
type Message =
  | { kind: 'call'; id: number; name: string; argument: unknown }
  | { kind: 'result'; id: number; value: unknown }
  | { kind: 'error'; id: number; message: string; code: string | undefined };

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** One end of a port. Each end answers calls with its handlers and can call the handlers of the other end. */
export class PortCalls {
  readonly #port: Port;
  readonly #handlers: Handlers;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 1;
  #gone: Error | undefined;

  constructor(port: Port, handlers: Handlers) {
    this.#port = port;
    this.#handlers = handlers;
    port.on('message', (message: Message) => void this.#receive(message));
  }

  /** @throws an error with the message of the error that the other end threw, and with its code if it has one */
  call<T>(name: string, argument?: unknown): Promise<T> {
    if (this.#gone) return Promise.reject(this.#gone);
    const id = this.#nextId++;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.#port.postMessage({ kind: 'call', id, name, argument } satisfies Message);
    });
  }

  async #receive(message: Message): Promise<void> {
    if (message.kind === 'call') return this.#answer(message);
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.kind === 'result') waiting?.resolve(message.value);
    else waiting?.reject(errorFrom(message));
  }

  async #answer({ id, name, argument }: Extract<Message, { kind: 'call' }>): Promise<void> {
    try {
      const value = await this.#handlers[name]!(argument as never);
      this.#port.postMessage({ kind: 'result', id, value } satisfies Message);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      const code = error instanceof StockadeError ? error.code : undefined;
      this.#port.postMessage({ kind: 'error', id, message: text, code } satisfies Message);
    }
  }

  /** The other end is gone: rejects all calls under way, and every later call. */
  abandon(why = new Error('the other thread has ended')): void {
    this.#gone ??= why;
    for (const { reject } of this.#waiting.values()) reject(this.#gone);
    this.#waiting.clear();
  }
}

/** Watches for the end of a thread that is called. Of several reasons the first one counts, and the calls under way tell it too. */
export class ThreadEnd {
  #why: Error | undefined;
  #isExpected = false;
  #tell!: (why: Error) => void;
  /** Resolves with the reason if the thread ends before that is expected. */
  readonly failed = new Promise<Error>((resolve) => {
    this.#tell = resolve;
  });

  constructor(thread: Worker, name: string, calls: PortCalls) {
    thread.on('error', (error) => this.fail(error));
    thread.on('exit', (code) => {
      if (!this.#isExpected) this.fail(new Error(`${name} ended with code ${code}`));
      calls.abandon(this.#why);
    });
  }

  fail(why: Error): void {
    this.#why ??= why;
    this.#tell(this.#why);
  }

  expect(): void {
    this.#isExpected = true;
  }
}

function errorFrom({ message, code }: Extract<Message, { kind: 'error' }>): Error {
  return code === undefined ? new Error(message) : new StockadeError(code, message);
}
