// The programs that tests and benches start, and the packages that contain them.
import { accessSync, constants, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export const servers = {
  redis: {
    programs: ['redis-server'],
    why: 'tests and benches start a Redis of their own',
    debianPackage: 'redis-server',
    brewFormula: 'redis',
  },
  postgres: {
    programs: ['initdb', 'postgres'],
    why: 'tests and benches start a Postgres of their own',
    debianPackage: 'postgresql',
    brewFormula: 'postgresql@17',
  },
  wrk: {
    programs: ['wrk'],
    why: 'the HTTP bench drives its load with it',
    debianPackage: 'wrk',
    brewFormula: 'wrk',
  },
  openssl: {
    programs: ['openssl'],
    why: 'the tests of TLS make their certificates with it',
    debianPackage: 'openssl',
    brewFormula: 'openssl',
  },
  zookeeper: {
    programs: ['zkServer.sh'],
    why: "the catalogue's tests hold locks in a ZooKeeper of their own",
    debianPackage: 'zookeeper',
    brewFormula: 'zookeeper',
  },
  nginx: {
    programs: ['nginx'],
    why: 'the tests of deploy/nginx.conf start it in front of a node',
    debianPackage: 'nginx-light',
    brewFormula: 'nginx',
  },
  haproxy: {
    programs: ['haproxy'],
    why: 'the tests of deploy/haproxy.cfg start it in front of a node',
    debianPackage: 'haproxy',
    brewFormula: 'haproxy',
  },
  pgbouncer: {
    programs: ['pgbouncer'],
    why: 'the tests of pooling put it in front of a Postgres',
    debianPackage: 'pgbouncer',
    brewFormula: 'pgbouncer',
  },
  chromium: {
    programs: ['chromium'],
    why: "the tests of the operators' console open it in a browser",
    debianPackage: 'chromium',
    brewFormula: 'chromium',
  },
  zsh: {
    programs: ['zsh'],
    why: 'the test of `stockade completion zsh` presses Tab in it',
    debianPackage: 'zsh',
    brewFormula: 'zsh',
  },
  python: {
    programs: ['python3'],
    why: 'the tests of the draw repeat it with a second program, in Python',
    debianPackage: 'python3',
    brewFormula: 'python',
  },
  prometheus: {
    programs: ['prometheus', 'promtool'],
    why: 'the tests of deploy/prometheus/ and deploy/grafana/ run their queries in it',
    debianPackage: 'prometheus',
    brewFormula: 'prometheus',
  },
  systemd: {
    programs: ['systemd-analyze'],
    why: 'the tests of deploy/systemd/ check the unit with it',
    debianPackage: 'systemd',
    // There is none for macOS.
    brewFormula: 'systemd',
  },
};

/** Debian's Postgres is not on the PATH, and neither are Homebrew's versioned formulas. */
const postgresParents = ['/usr/lib/postgresql', '/opt/homebrew/opt', '/usr/local/opt'];

/** Neither Debian nor Homebrew puts ZooKeeper's own scripts on the PATH. */
const zookeeperFolders = [
  '/usr/share/zookeeper/bin',
  '/opt/homebrew/opt/zookeeper/libexec/bin',
  '/usr/local/opt/zookeeper/libexec/bin',
];

/** The folder that holds all programs of a server, so that all come from one installation; or undefined. */
export function findServer(name) {
  const onPath = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  return [...onPath, ...foldersOffPath(name)].find((folder) =>
    servers[name].programs.every((program) => isExecutable(join(folder, program))),
  );
}

function foldersOffPath(name) {
  if (name === 'postgres') return postgresFolders();
  if (['nginx', 'haproxy', 'pgbouncer'].includes(name)) return ['/usr/sbin'];
  return name === 'zookeeper' ? zookeeperFolders : [];
}

function postgresFolders() {
  const version = (folder) => Number(/\d+/.exec(folder)?.[0] ?? 0);
  return postgresParents.flatMap((parent) =>
    childrenOf(parent)
      .filter((child) => /^(postgresql(@\d+)?|\d+(\.\d+)?)$/.test(child))
      .sort((a, b) => version(b) - version(a))
      .map((child) => join(parent, child, 'bin')),
  );
}

function childrenOf(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
