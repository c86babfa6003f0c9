/** The files with which a shop is deployed: their form, and that they fit the program and each other. */
import { execFile, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { settingNames, settings } from '../../src/config/settings.ts';
import { TEARDOWN_LIMIT_MS } from '../../src/lib/teardown.ts';
import { Linters } from '../support/image/linters.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
/** What the secrets contain that the manifests name. */
const SECRETS = {
  REDIS_URL: 'rediss://stockade:word@redis:6380',
  DATABASE_URL: 'postgres://stockade_app:word@db/shop?sslmode=verify-full',
  OPS_TOKEN: 'a-token-for-operators',
  JWT_SECRET: 'a-secret-of-more-than-32-characters',
};
const FOLDERS = ['nodes', 'migrate', 'monitoring'];

// biome-ignore lint/suspicious/noExplicitAny: manifests of every kind.
type Manifest = any;
let linters: Linters;
let parse: (text: string) => Manifest[];

beforeAll(async () => {
  linters = await Linters.install();
  const { parseAllDocuments } = await linters.load('yaml');
  parse = (text) =>
    parseAllDocuments(text, { merge: true }).map((document: Manifest) => {
      expect([...document.errors, ...document.warnings]).toEqual([]);
      return document.toJS();
    });
});
afterAll(() => linters?.[Symbol.dispose]());

const manifests = () =>
  FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, 'deploy/kubernetes', folder))
      .filter((file) => file !== 'kustomization.yaml')
      .flatMap((file) => parse(read(`deploy/kubernetes/${folder}/${file}`))),
  );
const find = (kind: string, name = 'stockade'): Manifest => {
  const found = manifests().find((each) => each.kind === kind && each.metadata.name === name);
  if (!found) throw new Error(`there is no ${kind} ${name}`);
  return found;
};

test('the Dockerfile has no faults', async () => {
  const { validate } = await linters.load('dockerfile-utils');
  expect(validate(read('Dockerfile'))).toEqual([]);
  expect(validate('FROM node:22\nRUNN npm ci\n')).not.toEqual([]);
});

describe('the manifests of Kubernetes', () => {
  const groupOf = (apiVersion: string) => (apiVersion.includes('/') ? apiVersion : `core/${apiVersion}`);
  const modelsOf = ({ apiVersion }: Manifest) =>
    linters.load('kubernetes-models', groupOf(apiVersion).replace(/^core\//, ''));

  test('are valid by the schemas of Kubernetes', async () => {
    const all = manifests();
    expect(all.map(({ kind }) => kind).sort()).toEqual([
      'ConfigMap',
      'Deployment',
      'HorizontalPodAutoscaler',
      'Job',
      'NetworkPolicy',
      'NetworkPolicy',
      'PodDisruptionBudget',
      'Service',
    ]);
    for (const each of all) {
      const Model = (await modelsOf(each))[each.kind];
      new Model(each).validate();
    }
    const wrong = structuredClone(find('Deployment'));
    wrong.spec.template.spec.containers[0].ports[0].containerPort = 'eight';
    const { Deployment } = await modelsOf(wrong);
    expect(() => new Deployment(wrong).validate()).toThrow('must be integer');
  });

  /** The schemas allow members that they do not know; the types do not. */
  async function faultsByTypes(all: readonly Manifest[]): Promise<string> {
    const lines = all.map((each, i) => {
      const from = `kubernetes-models/${groupOf(each.apiVersion).replace(/^core\//, '')}`;
      return `import type { I${each.kind} as T${i} } from '${from}';\n({} as unknown as (t: T${i}) => void)(${JSON.stringify(each)});`;
    });
    writeFileSync(join(linters.folder, 'manifests.ts'), lines.join('\n'));
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--skipLibCheck'];
    const args = [
      join(ROOT, 'node_modules/typescript/bin/tsc'),
      ...options,
      '--ignoreConfig',
      'manifests.ts',
    ];
    return promisify(execFile)(process.execPath, args, { cwd: linters.folder }).then(
      () => '',
      ({ stdout }: { stdout: string }) => stdout,
    );
  }

  test('have no member that Kubernetes does not know', async () => {
    expect(await faultsByTypes(manifests())).toBe('');
    const mistyped = structuredClone(find('Deployment'));
    mistyped.spec.template.spec.containers[0].securityContext.readOnlyRootFileSystem = true;
    expect(await faultsByTypes([mistyped])).toContain('readOnlyRootFileSystem');
  });

  test('each folder lists all of its files', () => {
    for (const folder of FOLDERS) {
      const [{ resources }] = parse(read(`deploy/kubernetes/${folder}/kustomization.yaml`)) as [Manifest];
      const files = readdirSync(join(ROOT, 'deploy/kubernetes', folder)).filter(
        (file) => file !== 'kustomization.yaml',
      );
      expect(resources.filter((each: string) => each !== '../nodes').sort()).toEqual(files.sort());
    }
  });

  test('their settings are settings of the program, and valid', () => {
    const { data } = find('ConfigMap');
    const known = settingNames.map((name) => settings[name].env);
    expect(Object.keys(data).filter((name) => !known.includes(name))).toEqual([]);
    const config = loadConfig({ ...data, ...SECRETS }, {});
    expect(config).toMatchObject({ opsHost: '127.0.0.1', buyerAuth: 'jwt' });
    const { spec } = find('Deployment').spec.template;
    expect(spec.containers[0].ports).toEqual([
      { name: 'buyers', containerPort: config.port },
      { name: 'probes', containerPort: config.probePort },
    ]);
    const stopMs = config.stopDelayMs + config.shutdownGraceMs + TEARDOWN_LIMIT_MS;
    expect(spec.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(stopMs);
    expect(Number(spec.containers[0].resources.requests.cpu)).toBeGreaterThanOrEqual(config.workers);
  });

  test('only buyers reach a node through the service, and only with monitoring another port than probes', () => {
    expect(find('Service').spec.ports).toEqual([{ name: 'buyers', port: 80, targetPort: 'buyers' }]);
    const portsOf = (name: string) =>
      find('NetworkPolicy', name).spec.ingress.map((each: Manifest) => each.ports);
    expect(portsOf('stockade')).toEqual([[{ port: 'buyers' }, { port: 'probes' }]]);
    expect(portsOf('stockade-metrics')).toEqual([[{ port: 'ops' }]]);
    expect(find('NetworkPolicy', 'stockade-metrics').spec.ingress[0].from).toHaveLength(1);
  });

  test('no pod runs as root, may write to its root or become more than it is, or has a secret in its manifest', () => {
    for (const { spec } of [find('Deployment'), find('Job', 'stockade-migrate')].map(
      (each) => each.spec.template,
    )) {
      expect(spec).toMatchObject({
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
      });
      for (const container of spec.containers) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(container.resources.limits.memory).toBe(container.resources.requests.memory);
        expect((container.env ?? []).filter((each: Manifest) => 'value' in each)).toEqual([]);
      }
    }
    const [grant, role] = find('Job', 'stockade-migrate').spec.template.spec.containers[0].args.slice(1);
    expect([grant, role]).toEqual(['--grant-to', 'stockade_app']);
    expect(read('deploy/postgres-roles.sql')).toContain(`'${role}'`);
  });

  test('the secrets that they name, and their keys, are those of the page', () => {
    const page = read('docs/operations/kubernetes.md');
    const named = JSON.stringify(manifests()).matchAll(/"secret(?:KeyRef|Ref)":\{"name":"([\w-]+)"/g);
    expect(new Set([...named].map(([, name]) => name))).toEqual(new Set(['stockade', 'stockade-owner']));
    for (const name of ['stockade', 'stockade-owner'])
      expect(page).toContain(`kubectl create secret generic ${name} `);
    for (const key of Object.keys(SECRETS)) expect(page).toContain(`--from-literal=${key}=`);
  });

  test('the metrics are opened by a change of one setting and one port', () => {
    const [{ patches }] = parse(read('deploy/kubernetes/monitoring/kustomization.yaml')) as [Manifest];
    const steps = patches.flatMap(({ patch }: { patch: string }) => parse(patch)[0]);
    const { opsPort } = loadConfig({ ...find('ConfigMap').data, ...SECRETS }, {});
    expect(steps).toEqual([
      { op: 'replace', path: '/data/OPS_HOST', value: '0.0.0.0' },
      {
        op: 'add',
        path: '/spec/template/spec/containers/0/ports/-',
        value: { name: 'ops', containerPort: opsPort },
      },
    ]);
  });
});

describe('the unit of systemd', () => {
  const file = join(ROOT, 'deploy/systemd/stockade.service');
  const unit = readFileSync(file, 'utf8');
  const settingOf = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(unit)?.[1];

  test('gives a node the time to stop, and the open files that it needs', () => {
    const { shutdownGraceMs, stopDelayMs, maxConnections } = loadConfig({}, {});
    const stopS = (stopDelayMs + shutdownGraceMs + TEARDOWN_LIMIT_MS) / 1_000;
    expect(Number.parseInt(settingOf('TimeoutStopSec')!, 10)).toBeGreaterThan(stopS);
    expect(Number(settingOf('LimitNOFILE'))).toBeGreaterThanOrEqual((maxConnections * 9) / 8 + 256);
  });

  test('has the exposure that the page states, or less', () => {
    const args = ['security', '--offline=true', '--no-pager', file];
    const { stdout } = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
    const [, exposure] = /Overall exposure level for stockade\.service: ([\d.]+)/.exec(stdout)!;
    const [, stated] = /an exposure of ([\d.]+)\b/.exec(read('docs/operations/deploy.md'))!;
    expect(Number(exposure)).toBeLessThanOrEqual(Number(stated));
  });

  test('has no line that systemd does not understand', () => {
    const copy = join(linters.folder, 'stockade.service');
    const verify = (text: string) => {
      // The program need not be there, nor its user.
      writeFileSync(
        copy,
        text.replace('/usr/bin/node', process.execPath).replace('User=stockade', 'User=root'),
      );
      const { stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', copy], { encoding: 'utf8' });
      return stderr.split('\n').filter((line) => line.includes('stockade.service:'));
    };
    expect(verify(unit)).toEqual([]);
    expect(verify(unit.replace('ProtectSystem=', 'ProtectSystems='))).not.toEqual([]);
  });
});
