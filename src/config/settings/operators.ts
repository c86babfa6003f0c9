/** Settings of the ops port, and of the port for health checks. */
import { headerSecret, host, url, whole } from '../values/schemas.ts';
import type { Secret, SecretUrl } from '../values/secret.ts';
import type { SettingTable } from './setting.ts';

export interface OperatorsSettings {
  readonly opsHost: string;
  readonly opsPort: number;
  readonly opsToken: Secret | undefined;
  readonly opsUrl: SecretUrl | undefined;
  readonly probeHost: string;
  readonly probePort: number | undefined;
}

export const operatorsSettings: SettingTable<OperatorsSettings> = {
  opsHost: {
    env: 'OPS_HOST',
    flag: '--ops-host <address>',
    schema: host,
    fallback: '127.0.0.1',
    description: 'Address of the ops port.',
  },
  opsPort: {
    env: 'OPS_PORT',
    flag: '--ops-port <n>',
    schema: whole(0, 65_535),
    fallback: 9_090,
    description: 'Port for operators, metrics and health. 0: any free port.',
  },
  opsToken: {
    env: 'OPS_TOKEN',
    schema: headerSecret(16),
    fallback: undefined,
    fallbackText: 'a random one, kept in `DATA_DIR`/ops-token',
    description: 'Bearer token of the ops port, at least 16 visible ASCII characters.',
  },
  opsUrl: {
    env: 'OPS_URL',
    flag: '--ops-url <url>',
    schema: url('http:', 'https:'),
    fallback: undefined,
    fallbackText: '`OPS_HOST` and `OPS_PORT`',
    description: 'Ops port of the running node to which commands such as `sale` and `verify` connect.',
    usedBy: ['command'],
  },
  probeHost: {
    env: 'PROBE_HOST',
    flag: '--probe-host <address>',
    schema: host,
    fallback: '127.0.0.1',
    description: 'Address of the probe port. `0.0.0.0`: all addresses, as a kubelet needs it.',
    usedBy: ['node', 'sync'],
  },
  probePort: {
    env: 'PROBE_PORT',
    flag: '--probe-port <n>',
    schema: whole(0, 65_535),
    fallback: undefined,
    fallbackText: 'no probe port',
    description:
      'Port for health checks by other machines. It answers `/healthz` and `/readyz` without a token and without details, and nothing else. 0: any free port.',
    usedBy: ['node', 'sync'],
  },
};
