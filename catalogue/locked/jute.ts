/** Jute, the encoding of ZooKeeper's protocol: big-endian numbers, and strings after their length. */

export class JuteWriter {
  readonly #parts: Buffer[] = [];

  int(value: number): this {
    const part = Buffer.allocUnsafe(4);
    part.writeInt32BE(value);
    this.#parts.push(part);
    return this;
  }

  long(value: bigint): this {
    const part = Buffer.allocUnsafe(8);
    part.writeBigInt64BE(value);
    this.#parts.push(part);
    return this;
  }

  bool(value: boolean): this {
    this.#parts.push(Buffer.from([value ? 1 : 0]));
    return this;
  }

  buffer(value: Buffer): this {
    this.int(value.length);
    this.#parts.push(value);
    return this;
  }

  string(value: string): this {
    return this.buffer(Buffer.from(value));
  }

  append(other: JuteWriter): this {
    this.#parts.push(...other.#parts);
    return this;
  }

  /** Everything that was written, after its length. */
  frame(): Buffer {
    const { length } = Buffer.concat(this.#parts);
    return Buffer.concat([...new JuteWriter().int(length).#parts, ...this.#parts]);
  }
}

export class JuteReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  int(): number {
    this.#at += 4;
    return this.#bytes.readInt32BE(this.#at - 4);
  }

  long(): bigint {
    this.#at += 8;
    return this.#bytes.readBigInt64BE(this.#at - 8);
  }

  buffer(): Buffer {
    const length = Math.max(0, this.int());
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  string(): string {
    return this.buffer().toString();
  }

  strings(): string[] {
    return Array.from({ length: Math.max(0, this.int()) }, () => this.string());
  }
}

/** Splits the bytes of a connection into frames. */
export class JuteFrames {
  #rest = Buffer.alloc(0);

  *push(chunk: Buffer): Generator<Buffer> {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= 4) {
      const end = 4 + this.#rest.readInt32BE(0);
      if (this.#rest.length < end) return;
      const frame = this.#rest.subarray(4, end);
      this.#rest = this.#rest.subarray(end);
      yield frame;
    }
  }
}
