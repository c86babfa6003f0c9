import type { Socket } from 'node:net';
import { parseAddress } from '../../../admission/addresses.ts';

const NO_ADDRESS = new Uint8Array(0);

/** The request that is under way on a connection, as the connection needs it. */
export interface UnderWay {
  /** Whether all of the request is there and its answer is not: then the client can only wait. */
  readonly isBeingHandled: boolean;
  /** Whether its answer is there and will close the connection: then what follows the request does not matter. */
  readonly isLastAnswered: boolean;
  /** The connection is closed, so no answer can be sent. */
  aborted(): void;
}

/** A property that Node adds to a socket and does not document. */
interface Parsed {
  readonly parser?: { onIncoming: unknown } | null;
}

/**
 * Tells the parser that what follows is not HTTP. Otherwise it would make objects of everything that it has read, up to 64 KB
 * with 2,400 requests: 400 such connections kept a thread busy for 41 s; with this, for 1.3 s.
 */
const STOP = () => 2;

/** A connection, and the request that is under way on it. */
export class NodeConnection {
  readonly #socket: Socket;
  /** Read while the connection is open, because Node forgets it afterwards. */
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

  /** Whether everything that was written has left this process. The kernels of both ends may still hold some of it. */
  get isAllTaken(): boolean {
    return this.#socket.writableLength === 0;
  }

  /** Closes the connection at once. Answers that are not sent yet are lost; requests that are not parsed yet are discarded. */
  close(): void {
    const { parser } = this.#socket as Socket & Parsed;
    if (parser) parser.onIncoming = STOP;
    this.#socket.destroy();
  }

  /** The connection is closed, by either end. */
  aborted(): void {
    this.underWay?.aborted();
  }

  /** Answers what Node has no request object for, and closes the connection. */
  refuse(answer: string): void {
    this.#socket.write(answer);
    this.close();
  }
}
