/** Many people who share some connections, as behind a gateway. */
import { type Answered, Line } from '../../support/crowd/line.ts';

export interface Request {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly buyerId: string;
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

export class Askers {
  readonly #lines: Line[];
  readonly #free: Line[];
  readonly #waiting: ((line: Line) => void)[] = [];
  #requests = 0;

  private constructor(lines: Line[]) {
    this.#lines = lines;
    this.#free = [...lines];
  }

  static async open(url: string, connections: number): Promise<Askers> {
    const { hostname, port } = new URL(url);
    const lines = Array.from({ length: connections }, () => new Line(hostname, Number(port)));
    await Promise.all(lines.map((line) => line.open()));
    return new Askers(lines);
  }

  /** Requests that were answered so far. */
  get requests(): number {
    return this.#requests;
  }

  async ask(request: Request): Promise<Answered> {
    const line = this.#free.pop() ?? (await new Promise<Line>((free) => this.#waiting.push(free)));
    const answered = await new Promise<Answered>((done) => line.ask(textOf(request), done));
    this.#requests++;
    const next = this.#waiting.shift();
    if (next) next(line);
    else this.#free.push(line);
    return answered;
  }

  close(): void {
    for (const line of this.#lines) line.close();
  }
}

function textOf({ method, path, buyerId, headers = {}, body }: Request): string {
  const content = body === undefined ? '' : JSON.stringify(body);
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return (
    `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nX-Buyer-Id: ${buyerId}\r\n${more.join('')}` +
    `Content-Length: ${content.length}\r\n\r\n${content}`
  );
}
