import { request } from 'node:http';
import { type Answer, readAnswer } from '../nodes/node.ts';

export interface AskedOnce {
  readonly method?: string;
  readonly headers?: Record<string, string>;
}

/** Sends one request to a port of this machine, on a connection of its own. */
export function askOnce(
  port: number,
  path: string,
  { method = 'GET', headers = {} }: AskedOnce = {},
): Promise<Answer> {
  return new Promise((resolve, reject) =>
    request({ host: '127.0.0.1', port, path, method, headers, agent: false })
      .once('error', reject)
      .once('response', async (response) => {
        let text = '';
        for await (const chunk of response) text += chunk;
        resolve(readAnswer(response.statusCode!, response.headers as Record<string, string>, text));
      })
      .end(),
  );
}
