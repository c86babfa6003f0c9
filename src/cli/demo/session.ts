import type { Config } from '../../config/config.ts';
import { opsTokenFile } from '../../config/ops-token.ts';
import type { RunningNode } from '../../node/node.ts';
import { invokedAs, shellWord } from '../terminal/invoked-as.ts';

function bearer(config: Config): string {
  const token = config.opsToken ? '$OPS_TOKEN' : `$(cat ${shellWord(opsTokenFile(config))})`;
  return `-H "Authorization: Bearer ${token}"`;
}

/** Commands to check a draw while the node runs. @param commitment that was shown before the draw */
export function drawSession(
  { opsUrl }: Pick<RunningNode, 'opsUrl'>,
  { saleId, commitment }: { readonly saleId: string; readonly commitment: string },
  config: Config,
): string {
  return `
# The order of the places, the seed, and a check that the one follows from the other:
curl -s ${opsUrl}/v1/sales/${saleId}/queue/draw ${bearer(config)} > draw.ndjson
${invokedAs()} queue check draw.ndjson --commitment ${commitment}
`;
}

/** Commands to paste into another shell while the node runs. They read the token from its file, so that it is not printed. */
export function curlSession(
  node: Pick<RunningNode, 'publicUrl' | 'opsUrl'>,
  saleId: string,
  config: Config,
): string {
  const ops = `${bearer(config)} -H 'Content-Type: application/json'`;
  const buy = (sale: string, buyer: string) =>
    `curl -s -X POST ${node.publicUrl}/v1/sales/${sale}/orders -H 'X-Buyer-Id: ${buyer}' -d '{"quantity":1}'`;
  return `
# The sale that has just been sold out, and a buyer who comes too late:
curl -s ${node.publicUrl}/v1/sales/${saleId}
${buy(saleId, 'alice')}

# A new sale, a buyer who gets a unit, and the same buyer again:
curl -s -X POST ${node.opsUrl}/v1/sales ${ops} -d '{"id":"my-${saleId}","stock":2}'
${buy(`my-${saleId}`, 'alice')}
${buy(`my-${saleId}`, 'alice')}

# Every unit accounted for:
curl -s -X POST ${node.opsUrl}/v1/sales/${saleId}/verify ${ops}
`;
}
