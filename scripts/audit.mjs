// npm run audit: what is known to be wrong with the packages that a node runs with, and whether they are those that were
// looked at. The first needs a registry that answers it; where it doesn't, that is said, and only the second is judged.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { faultsOf } from './locked-packages.mjs';

const HELP = `Usage: npm run audit -- [options]

Whether the packages that a node runs with are those that were looked at, and
what is known to be wrong with them, where the registry tells that.

Options:
  --json      print one JSON object on stdout: ok, faults, vulnerabilities (null:
              the registry does not tell them)
  -h, --help  display help

Exit codes: 0 all holds, 1 it does not, 2 the command is wrong.`;

const options = readOptions();
if (options.help) console.log(HELP);
else audit();

function readOptions() {
  try {
    return parseArgs({
      options: { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
    }).values;
  } catch (error) {
    console.error(`error: ${error.message}\n(npm run audit -- --help says what there is)`);
    process.exit(2);
  }
}

function audit() {
  const faults = faultsOf(read('package.json'), read('package-lock.json'));
  const vulnerabilities = known();
  const ok = faults.length === 0 && (vulnerabilities ?? []).length === 0;
  console.log(options.json ? JSON.stringify({ ok, faults, vulnerabilities }) : told(faults, vulnerabilities));
  process.exitCode = ok ? 0 : 1;
}

function read(name) {
  return JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));
}

function told(faults, vulnerabilities) {
  const ofLock = faults.length === 0 ? ['package-lock.json: all holds'] : faults;
  return [...ofLock, `known vulnerabilities: ${vulnerabilitiesText(vulnerabilities)}`].join('\n');
}

function vulnerabilitiesText(vulnerabilities) {
  if (vulnerabilities === null) return 'not looked up, because this registry does not tell them';
  if (vulnerabilities.length === 0) return 'none in what a node runs with';
  return vulnerabilities.map(({ name, range, severity }) => `\n  ${name} ${range}: ${severity}`).join('');
}

/** As npm tells them; `null` if nobody does. */
function known() {
  const { stdout } = spawnSync('npm', ['audit', '--omit=dev', '--json'], { encoding: 'utf8' });
  let report;
  try {
    report = JSON.parse(stdout);
  } catch {
    return null;
  }
  if (!report?.vulnerabilities) return null;
  return Object.values(report.vulnerabilities).map(({ name, range, severity }) => ({
    name,
    range,
    severity,
  }));
}
