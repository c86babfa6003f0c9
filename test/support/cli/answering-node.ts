/** Stands in for the ops port of a node, for commands that are given what it answers. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/**
 * Listens until the test has finished.
 * @param answers the body of each answer, or its status and its body; `undefined`: the request gets none
 * @returns the environment of a command that asks it
 */
export async function answeringNode(
  answers: (method: string, url: URL) => object | readonly [status: number, body: object] | undefined,
): Promise<NodeJS.ProcessEnv> {
  const server = createServer(({ method, url }, response) => {
    const answer = answers(method!, new URL(url!, 'http://here'));
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
