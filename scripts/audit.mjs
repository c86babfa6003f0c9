// npm run audit: what is known to be wrong with the packages that a node runs with, and whether they are those that were
// looked at. The first needs a registry that answers it; where it doesn't, that is said, and only the second is judged.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { faultsOf } from './locked-packages.mjs';

const json = (name) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));
const faults = faultsOf(json('package.json'), json('package-lock.json'));
console.log(faults.length === 0 ? 'package-lock.json: all holds' : faults.join('\n'));

const known = advisories();
if (known === undefined) {
  console.log('known vulnerabilities: not looked up, because this registry does not tell them');
} else if (known.length === 0) {
  console.log('known vulnerabilities: none in what a node runs with');
} else {
  console.log(['known vulnerabilities:', ...known].join('\n'));
}
process.exitCode = faults.length === 0 && (known ?? []).length === 0 ? 0 : 1;

/** One line each; `undefined` if nobody answers that. */
function advisories() {
  const { stdout } = spawnSync('npm', ['audit', '--omit=dev', '--json'], { encoding: 'utf8' });
  let report;
  try {
    report = JSON.parse(stdout);
  } catch {
    return undefined;
  }
  if (!report.vulnerabilities) return undefined;
  return Object.values(report.vulnerabilities).map(
    ({ name, severity, range }) => `  ${name} ${range}: ${severity}`,
  );
}
