import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { findServer } from '../../../scripts/servers.mjs';
import { freePort } from './process/free-port.ts';
import { ServerProcess } from './process/server-process.ts';

/** ZooKeeper's unit of time: a session times out after 2 to 20 of them. */
const tickTimeMs = 200;
const answerLimitMs = 1_000;
/** Small, and chosen for a quick start: it lives for a few seconds. */
const jvmFlags = '-Xmx64m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC';

interface Member {
  process: ServerProcess;
  ports: { client: number; peer: number; election: number };
}

/** A ZooKeeper of several servers for one test. Disposing ends them all and removes their directories. */
export class ZooKeeperEnsemble implements AsyncDisposable {
  readonly #members: readonly Member[];

  private constructor(members: readonly Member[]) {
    this.#members = members;
  }

  static async start(size = 3): Promise<ZooKeeperEnsemble> {
    const folder = findServer('zookeeper');
    if (!folder) throw new Error('ZooKeeper not found: run `node scripts/ensure-servers.mjs zookeeper`');
    const members: Member[] = [];
    for (let i = 0; i < size; i++) {
      const ports = { client: await freePort(), peer: await freePort(), election: await freePort() };
      members.push({ process: await ServerProcess.create({ name: 'zookeeper', lastSignal: 'KILL' }), ports });
    }
    const ensemble = new ZooKeeperEnsemble(members);
    const starts = await Promise.allSettled(members.map((member) => ensemble.#launch(folder, member)));
    const failure = starts.find((start) => start.status === 'rejected');
    if (!failure) return ensemble;
    await ensemble[Symbol.asyncDispose]();
    throw failure.reason;
  }

  /** `host:port` of every server, the leader first. */
  async servers(): Promise<string[]> {
    const modes = await Promise.all(this.#members.map(modeOf));
    const order = this.#members.map((member, i) => ({ member, leads: modes[i] === 'leader' }));
    order.sort((a, b) => Number(b.leads) - Number(a.leads));
    return order.map(({ member }) => `127.0.0.1:${member.ports.client}`);
  }

  /** Kills the leader, as a power cut would. */
  async killLeader(): Promise<void> {
    const modes = await Promise.all(this.#members.map(modeOf));
    const leader = this.#members[modes.indexOf('leader')];
    if (!leader) throw new Error(`no leader: the servers are ${modes.join(', ')}`);
    await leader.process.end('SIGKILL');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#members.map(({ process }) => process.remove()));
  }

  async #launch(folder: string, member: Member): Promise<void> {
    const { directory } = member.process;
    const config = join(directory, 'zoo.cfg');
    await writeFile(join(directory, 'myid'), String(this.#members.indexOf(member) + 1));
    await writeFile(config, this.#config(member));
    const env = { ...process.env, JMXDISABLE: 'true', JVMFLAGS: jvmFlags, ZOO_LOG_DIR: directory };
    // In the foreground the script becomes the server, so its pid is the one to watch and end.
    await member.process.launch(
      join(folder, 'zkServer.sh'),
      ['start-foreground', config],
      async () => ['leader', 'follower', 'standalone'].includes(await modeOf(member)),
      env,
    );
  }

  #config({ process: { directory }, ports }: Member): string {
    const settings = {
      tickTime: tickTimeMs,
      initLimit: 50,
      syncLimit: 20,
      dataDir: directory,
      clientPort: ports.client,
      clientPortAddress: '127.0.0.1',
      'admin.enableServer': false,
      '4lw.commands.whitelist': 'srvr',
    };
    const peers = this.#members.map(
      ({ ports: { peer, election } }, i) => `server.${i + 1}=127.0.0.1:${peer}:${election}`,
    );
    return [...Object.entries(settings).map(([name, value]) => `${name}=${value}`), ...peers, ''].join('\n');
  }
}

/** leader, follower, or `''` for a server that does not serve. */
function modeOf({ ports }: Member): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(ports.client, '127.0.0.1', () => socket.write('srvr'));
    socket.setTimeout(answerLimitMs, () => socket.destroy());
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(/^Mode: (\w+)$/m.exec(answer)?.[1] ?? ''));
  });
}
