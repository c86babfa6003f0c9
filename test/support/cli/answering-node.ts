/** Stands in for the ops port of a node, for commands that are given what it answers. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

/** The body of a request; `{}` if it has none. */
type Sent = Readonly<Record<string, unknown>>;

/**
 * Listens until the test has finished.
 * @param answers is called with each request, and returns the body of the answer, or its status and its body; `undefined`: the request gets none
 * @returns the environment of a command that asks it
 */
export async function answeringNode(
  answers: (
    method: string,
    url: URL,
    body: Sent,
  ) => object | readonly [status: number, body: object] | undefined,
): Promise<NodeJS.ProcessEnv> {
  const server = createServer(async (request, response) => {
    const { method, url } = request;
    const sent = await text(request);
    const answer = answers(method!, new URL(url!, 'http://here'), sent === '' ? {} : JSON.parse(sent));
    if (!answer) return;
    const [status, body] = Array.isArray(answer) ? answer : [200, answer];
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { OPS_URL: `http://127.0.0.1:${port}`, OPS_TOKEN: 'a token of the operators' };
}
