/**
 * A node that a rehearsal starts, as a process of its own. It ends with the rehearsal: when the channel to it closes, also
 * because the rehearsal was killed, the node stops and removes the data folder that was made for it.
 */
import { rm } from 'node:fs/promises';
import { loadConfig } from '../../../config/load-config.ts';
import { startNode } from '../../../node/node.ts';
import { createLog } from '../../../node/process/log.ts';
import { describe } from '../../terminal/explain.ts';

/** Of a folder that only this node uses. */
const scratch = process.argv[2];
/** The rehearsal may have been killed meanwhile. */
const tell = (message: NodeMessage) => process.connected && process.send!(message, () => {});
const asked = new Promise<void>((resolve) => process.once('disconnect', resolve));

export type NodeMessage =
  | {
      readonly kind: 'ready';
      readonly publicUrl: string;
      readonly opsUrl: string;
      readonly backend: string;
      readonly database: string;
    }
  | { readonly kind: 'failed'; readonly why: string };

try {
  const config = loadConfig(process.env, {});
  const node = await startNode(config, createLog(config, { stderr: true }));
  const { publicUrl, opsUrl, backendName: backend, databaseName: database } = node;
  tell({ kind: 'ready', publicUrl, opsUrl, backend, database });
  const end = await Promise.race([asked, node.failed]);
  if (end instanceof Error) tell({ kind: 'failed', why: describe(end) });
  await node.stop();
} catch (error) {
  tell({ kind: 'failed', why: describe(error) });
} finally {
  if (scratch !== undefined) await rm(scratch, { recursive: true, force: true, maxRetries: 3 });
}
process.exit(0);
