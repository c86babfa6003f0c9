// Makes sure that the named programs are installed: node scripts/ensure-servers.mjs redis postgres wrk
//
// If they are, it prints nothing. On Debian as root it installs missing ones with apt-get; anywhere else it fails and says
// what to install. It never starts a service.
import { spawnSync } from 'node:child_process';
import { existsSync, unlinkSync, writeFileSync } from 'node:fs';
import { findServer, servers } from './servers.mjs';

const names = process.argv.slice(2);
const unknown = names.filter((name) => !Object.hasOwn(servers, name));
if (names.length === 0 || unknown.length > 0) {
  fail(
    `usage: node scripts/ensure-servers.mjs ${Object.keys(servers)
      .map((name) => `[${name}]`)
      .join(' ')}`,
  );
}

const missing = names.filter((name) => !findServer(name));
if (missing.length > 0) {
  if (!canInstall()) fail(`Missing: ${missing.map(describe).join('; ')}.`, `Install: ${advice(missing)}.`);
  install(missing);
}

function describe(name) {
  return `${servers[name].programs.join(' and ')} (${servers[name].why})`;
}

function advice(wanted) {
  const debian = wanted.map((name) => servers[name].debianPackage).join(' ');
  const brew = wanted.map((name) => servers[name].brewFormula).join(' ');
  return `on Debian or Ubuntu: sudo apt-get install ${debian}; on macOS: brew install ${brew}`;
}

function canInstall() {
  return existsSync('/etc/debian_version') && process.getuid?.() === 0;
}

function install(wanted) {
  const packages = wanted.map((name) => servers[name].debianPackage);
  console.error(
    `Installing with apt-get: ${packages.join(', ')}. Missing: ${wanted.map(describe).join('; ')}.`,
  );
  const output = withServicesKeptDown(() => {
    // The update fails if any third-party source is broken, but the packages may still be installable: so it is not checked.
    return aptGet('update') + aptGet('install', '-y', '--no-install-recommends', ...packages);
  });
  const stillMissing = wanted.filter((name) => !findServer(name));
  if (stillMissing.length === 0) return;
  fail(
    output.trimEnd(),
    `apt-get did not install ${stillMissing.flatMap((name) => servers[name].programs).join(', ')}: its output is above.`,
    `Correct what it complains about and run this again, or install by hand: ${advice(stillMissing)}.`,
  );
}

/** Runs apt-get and returns its whole output. */
function aptGet(...args) {
  const result = spawnSync(
    'apt-get',
    ['-o', 'Acquire::Retries=3', '-o', 'DPkg::Lock::Timeout=120', ...args],
    {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const output = [result.stdout, result.stderr, result.error?.message].filter(Boolean).join('');
  return `$ apt-get ${args.join(' ')}\n${output.trimEnd()}\n`;
}

/** Debian starts the service of a package that it installs, unless policy-rc.d answers 101 ("not allowed"). */
function withServicesKeptDown(action) {
  const policy = '/usr/sbin/policy-rc.d';
  const ours = !existsSync(policy);
  // An interrupt also reaches apt-get and ends it. This process must go on, so that it removes its policy.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
  if (ours) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { flag: 'wx', mode: 0o755 });
  try {
    return action();
  } finally {
    if (ours) unlinkSync(policy);
  }
}

function fail(...lines) {
  console.error(lines.join('\n'));
  process.exit(1);
}
