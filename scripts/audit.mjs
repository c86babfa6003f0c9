// npm run audit: checks that the packages that a node runs with are those that were reviewed, and lists their known
// vulnerabilities. The second needs a registry that reports vulnerabilities; without one, the output says so.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { faultsOf } from './locked-packages.mjs';

const HELP = `Usage: npm run audit -- [options]

Checks that the packages that a node runs with are those that were reviewed,
and lists their known vulnerabilities if the registry reports them.

Options:
  --json      print one JSON object on stdout: ok, faults, vulnerabilities (null
              if the registry does not report them)
  -h, --help  display help

Exit codes: 0 no faults and no known vulnerabilities, 1 there are some, 2 the
command line is wrong.`;

const options = readOptions();
if (options.help) console.log(HELP);
else audit();

function readOptions() {
  try {
    return parseArgs({
      options: { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
    }).values;
  } catch (error) {
    console.error(`error: ${error.message}\n(npm run audit -- --help lists the options)`);
    process.exit(2);
  }
}

function audit() {
  const faults = faultsOf(read('package.json'), read('package-lock.json'));
  const vulnerabilities = knownVulnerabilities();
  const ok = faults.length === 0 && (vulnerabilities ?? []).length === 0;
  console.log(
    options.json ? JSON.stringify({ ok, faults, vulnerabilities }) : reportText(faults, vulnerabilities),
  );
  process.exitCode = ok ? 0 : 1;
}

function read(name) {
  return JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));
}

function reportText(faults, vulnerabilities) {
  const lockLines = faults.length === 0 ? ['package-lock.json: no faults'] : faults;
  return [...lockLines, `known vulnerabilities: ${vulnerabilitiesText(vulnerabilities)}`].join('\n');
}

function vulnerabilitiesText(vulnerabilities) {
  if (vulnerabilities === null) return 'not checked, because this registry does not report them';
  if (vulnerabilities.length === 0) return 'none in the packages that a node runs with';
  return vulnerabilities.map(({ name, range, severity }) => `\n  ${name} ${range}: ${severity}`).join('');
}

/** As npm reports them; `null` if the registry does not report any. */
function knownVulnerabilities() {
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
