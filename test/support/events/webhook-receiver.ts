/** The shop's webhook: accepts events, or fails as a test wants. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { OrderEvent } from '../../../src/events/order-event.ts';

/** A status to answer with; `silent`: no answer; `cut`: a broken connection. */
export type Behaviour = number | 'silent' | 'cut';

export interface Received {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly events: readonly OrderEvent[];
  readonly answer: Behaviour;
}

export class WebhookReceiver implements AsyncDisposable {
  /** Every request, in order of arrival. */
  readonly requests: Received[] = [];
  /** Decides the answer to the next request. */
  behave: (events: readonly OrderEvent[]) => Behaviour | Promise<Behaviour> = () => 204;
  readonly #server = createServer((request, response) => void this.#serve(request, response));

  static async start(): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook?shop=1`;
  }

  /** All accepted events, including repeated ones. */
  get taken(): OrderEvent[] {
    return this.requests.flatMap(({ events, answer }) =>
      typeof answer === 'number' && answer >= 200 && answer < 300 ? events : [],
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url: path, headers } = request;
    const body = await text(request);
    const { events } = JSON.parse(body) as { events: OrderEvent[] };
    const answer = await this.behave(events);
    this.requests.push({ method, path, headers, body, events, answer });
    if (answer === 'cut') request.socket.destroy();
    else if (answer !== 'silent') response.writeHead(answer).end();
  }
}
