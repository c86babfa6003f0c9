/**
 * Splits what a client sends into requests, so that a fault can be placed exactly after one of them: a large request comes in many
 * chunks, and a chunk may hold many pipelined requests.
 *
 * The first byte identifies the protocol: Redis commands start with `*`, a Postgres start-up packet with the high byte of its
 * length, 0. Anything else is passed on chunk by chunk. Encrypted connections are not understood.
 */
type FindEnd = (bytes: Buffer) => number | undefined;

const redisFirstByte = '*'.charCodeAt(0);
const postgresFirstByte = 0;

/**
 * A Postgres cancel, SSL or GSS request has 8 bytes. It is not a start-up packet: another packet, or nothing,
 * follows.
 */
const shortStartUpBytes = 8;

/** Parse, Bind, Describe, Execute, Close: the server answers at the Sync or Flush after them. */
const unansweredMessages = new Set([...'PBDEC'].map((type) => type.charCodeAt(0)));

export class RequestFramer {
  #rest: Buffer = Buffer.alloc(0);
  #findEnd: FindEnd | undefined;

  /** The requests that this chunk completes. */
  push(chunk: Buffer): Buffer[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#findEnd ??= framingOf(this.#rest[0]);
    const requests: Buffer[] = [];
    for (;;) {
      const end = this.#rest.length === 0 ? undefined : this.#findEnd(this.#rest);
      if (end === undefined) return requests;
      requests.push(this.#rest.subarray(0, end));
      this.#rest = this.#rest.subarray(end);
    }
  }

  /** The rest of an incomplete request, after its client has ended. */
  flush(): Buffer {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    return rest;
  }
}

function framingOf(firstByte: number | undefined): FindEnd {
  if (firstByte === redisFirstByte) return endOfRedisCommand;
  if (firstByte === postgresFirstByte) return postgresFraming();
  return (bytes) => bytes.length;
}

/** `*2\r\n$3\r\nGET\r\n$1\r\na\r\n`, or a line of plain words. */
function endOfRedisCommand(bytes: Buffer): number | undefined {
  const line = readLine(bytes, 0);
  if (!line) return undefined;
  if (bytes[0] !== redisFirstByte) return line.end;
  let at = line.end;
  for (let left = Number(line.text.slice(1)); left > 0; left--) {
    const length = readLine(bytes, at);
    if (!length) return undefined;
    at = length.end + Number(length.text.slice(1)) + '\r\n'.length;
    if (at > bytes.length) return undefined;
  }
  return at;
}

function readLine(bytes: Buffer, start: number): { text: string; end: number } | undefined {
  const end = bytes.indexOf('\r\n', start);
  return end < 0 ? undefined : { text: bytes.toString('latin1', start, end), end: end + '\r\n'.length };
}

function postgresFraming(): FindEnd {
  let started = false;
  return (bytes) => {
    if (started) return endOfPostgresRequest(bytes);
    const length = bytes.length < 4 ? Number.POSITIVE_INFINITY : bytes.readInt32BE(0);
    if (length > bytes.length) return undefined;
    started = length > shortStartUpBytes;
    return length;
  };
}

/**
 * One message (type byte, length including itself, body), or a run of unanswered messages with the one that ends it.
 */
function endOfPostgresRequest(bytes: Buffer): number | undefined {
  let at = 0;
  while (at + 5 <= bytes.length) {
    const type = bytes.readUInt8(at);
    at += 1 + bytes.readInt32BE(at + 1);
    if (at > bytes.length) return undefined;
    if (!unansweredMessages.has(type)) return at;
  }
  return undefined;
}
