import type { Socket } from 'node:net';
import { parseAddress } from '../../../admission/addresses.ts';

const NO_ADDRESS = new Uint8Array(0);

/** What a connection needs to know of the request that is under way on it. */
export interface UnderWay {
  /** All of the request is there, and the answer is not: the client has nothing to do but wait. */
  readonly isBeingHandled: boolean;
  /** Its answer is there and closes the connection: what comes behind the request does not matter. */
  readonly isLastAnswered: boolean;
  /** The connection is closed: nobody waits for an answer. */
  aborted(): void;
}

/** As Node adds it to a socket, and does not document it. */
interface Parsed {
  readonly parser?: { onIncoming: unknown } | null;
}

/**
 * The parser is told that what follows is not HTTP. Else it would make objects of all that it has read, up to 64 KB with 2,400
 * requests: 400 such connections kept a thread busy for 41 s, and for 1.3 s with this.
 */
const STOP = () => 2;

/** A connection, and the request that is under way on it. */
export class NodeConnection {
  readonly #socket: Socket;
  /** As long as the connection is open: Node forgets it at the end. */
  readonly #address: string | undefined;
  #peer: Uint8Array | undefined;
  underWay: UnderWay | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    this.#address = socket.remoteAddress;
  }

  /** 4 bytes, or 16. */
  get peer(): Uint8Array {
    // A link-local address names its network card behind a percent sign.
    this.#peer ??= parseAddress(this.#address?.split('%')[0] ?? '') ?? NO_ADDRESS;
    return this.#peer;
  }

  get isClosed(): boolean {
    return this.#socket.destroyed;
  }

  /** Whether the client has taken, as far as its kernel's buffers and ours go, all that was written. */
  get isAllTaken(): boolean {
    return this.#socket.writableLength === 0;
  }

  /** What was written and not taken is lost, and what was read and not parsed is not parsed. */
  close(): void {
    const { parser } = this.#socket as Socket & Parsed;
    if (parser) parser.onIncoming = STOP;
    this.#socket.destroy();
  }

  /** It is closed, by whomever. */
  aborted(): void {
    this.underWay?.aborted();
  }

  /** Writes an answer that no request of Node's stands for, and closes. */
  refuse(answer: string): void {
    this.#socket.write(answer);
    this.close();
  }
}
