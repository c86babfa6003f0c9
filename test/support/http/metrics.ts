import type { TestNode } from '../nodes/node.ts';

/** The value of a metric on a node, summed over its labels; 0 if it was never counted. */
export async function metric(node: TestNode, name: string): Promise<number> {
  const { status, body } = await node.opsRequest('/metrics');
  if (status !== 200) throw new Error(`/metrics answered ${status}`);
  let sum = 0;
  for (const line of (body as string).split('\n')) {
    const [series, value] = line.split(' ');
    if (series === name || series?.startsWith(`${name}{`)) sum += Number(value);
  }
  return sum;
}
