import type { Config } from '../../config/config.ts';
import { settings } from '../../config/settings.ts';
import { httpUrl } from '../../config/values/hosts.ts';
import type { RunningNode } from '../../node/node.ts';
import { invokedAs, shellWord } from './invoked-as.ts';

type Place = Pick<RunningNode, 'publicUrl' | 'opsUrl' | 'backendName' | 'databaseName'>;

const USUAL_OPS_URL = httpUrl(String(settings.opsHost.fallback), Number(settings.opsPort.fallback));

/** The line that a node prints when it is ready. */
export function readyText(node: Place, config: Config): string {
  return (
    `Stockade sells at ${node.publicUrl} (operators: ${node.opsUrl}, console: ${node.opsUrl}/console; stock: ${node.backendName}; ` +
    `orders: ${node.databaseName}). Create a sale: ${createCommand(node, config)}`
  );
}

/** A command that creates a sale on this node from another shell. It has only the flags that differ from the defaults. */
export function createCommand(
  { opsUrl }: Pick<Place, 'opsUrl'>,
  { dataDir, opsToken }: Config,
  program = invokedAs(),
): string {
  const words = [`${program} sale create my-sale --stock 100`];
  if (opsUrl !== USUAL_OPS_URL) words.push(`--ops-url ${opsUrl}`);
  if (!opsToken && dataDir !== settings.dataDir.fallback) words.push(`--data-dir ${shellWord(dataDir)}`);
  return words.join(' ');
}
