import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A link to a server that delays each answer by the same time: like a store that is far away, not one that is busy. */
export class SlowLink implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(targetPort: number, delayMs: number) {
    this.#server = createServer({ noDelay: true }, (client) => {
      const target = connect({ port: targetPort, host: '127.0.0.1', noDelay: true });
      client.pipe(target);
      // Timers of equal length fire in order.
      target.on('data', (bytes) => setTimeout(() => client.write(bytes), delayMs));
      for (const [socket, other] of [
        [client, target],
        [target, client],
      ] as const) {
        this.#sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
      }
    });
  }

  static async start(targetPort: number, delayMs: number): Promise<SlowLink> {
    const link = new SlowLink(targetPort, delayMs);
    await new Promise<void>((resolve) => link.#server.listen(0, '127.0.0.1', resolve));
    return link;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
