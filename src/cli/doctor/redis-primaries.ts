/** Whether a node reaches the primaries of a Redis Cluster, at the addresses that the cluster announces. */
import type { Redis } from 'ioredis';
import { connect, singleUseClient } from '../../redis/clients.ts';
import { primariesOf } from '../../redis/eviction.ts';
import { describe } from '../terminal/explain.ts';
import { type Check, checksOf } from './check.ts';

const { ok, fail } = checksOf('redis');

const ADVICE =
  'Nodes connect to the addresses that the cluster announces, and compare the certificates with them. Correct cluster-announce-ip and cluster-announce-port, or set cluster-announce-hostname and cluster-preferred-endpoint-type hostname.';
const RIGHTS =
  'Allow the command to the user of REDIS_URL: deploy/redis-users.acl lists all that a node sends.';

/** @param url of a server of the cluster, to which `client` is connected */
export async function checkPrimaries(client: Redis, url: string): Promise<Check> {
  let urls: string[];
  try {
    urls = primariesOf(await client.cluster('SLOTS'), url);
  } catch (error) {
    return fail('primaries', `not known, because of cluster slots: ${describe(error)}`, RIGHTS);
  }
  const faults = (await Promise.all(urls.map(faultOf))).filter((fault) => fault !== undefined);
  if (faults.length > 0) return fail('primaries', faults.join('; '), ADVICE);
  return ok('primaries', `reachable: ${urls.map((each) => new URL(each).host).join(', ')}`);
}

async function faultOf(url: string): Promise<string | undefined> {
  const client = singleUseClient(url);
  try {
    await connect(client);
    return undefined;
  } catch (error) {
    return describe(error);
  } finally {
    client.disconnect();
  }
}
