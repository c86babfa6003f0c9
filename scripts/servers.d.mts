export type ServerName =
  | 'redis'
  | 'postgres'
  | 'wrk'
  | 'openssl'
  | 'zookeeper'
  | 'nginx'
  | 'haproxy'
  | 'pgbouncer'
  | 'chromium'
  | 'python'
  | 'prometheus'
  | 'systemd';

export interface ServerPackage {
  programs: string[];
  why: string;
  debianPackage: string;
  brewFormula: string;
}

export const servers: Record<ServerName, ServerPackage>;

/** The folder that holds all programs of a server, or undefined. */
export function findServer(name: ServerName): string | undefined;
