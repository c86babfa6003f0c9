/** The Redis protocol: requests as clients send them, and replies. */
import type { Reply } from './mini-redis.ts';

/** Splits incoming bytes into commands. */
export class CommandReader {
  #rest: Buffer = Buffer.alloc(0);

  read(data: Buffer): string[][] {
    this.#rest = this.#rest.length === 0 ? data : Buffer.concat([this.#rest, data]);
    const commands: string[][] = [];
    for (let one = this.#next(); one; one = this.#next()) commands.push(one);
    return commands;
  }

  #next(): string[] | undefined {
    let at = 0;
    const line = (): string | undefined => {
      const end = this.#rest.indexOf('\r\n', at);
      if (end < 0) return undefined;
      const text = this.#rest.toString('utf8', at, end);
      at = end + 2;
      return text;
    };
    const count = line();
    if (count === undefined) return undefined;
    const words: string[] = [];
    for (let i = Number(count.slice(1)); i > 0; i--) {
      const size = line();
      if (size === undefined) return undefined;
      const length = Number(size.slice(1));
      if (this.#rest.length < at + length + 2) return undefined;
      words.push(this.#rest.toString('utf8', at, at + length));
      at += length + 2;
    }
    this.#rest = this.#rest.subarray(at);
    return words;
  }
}

export function encode(reply: Reply): string {
  if (reply === null) return '$-1\r\n';
  if (typeof reply === 'number') return `:${reply}\r\n`;
  if (typeof reply === 'string') return `$${Buffer.byteLength(reply)}\r\n${reply}\r\n`;
  if ('ok' in reply) return `+${reply.ok}\r\n`;
  return `*${reply.length}\r\n${reply.map(encode).join('')}`;
}
