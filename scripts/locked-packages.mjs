// Checks without network that package-lock.json has only packages that were reviewed.

/** A new package raises this number: review it (`npm ls --all --omit=dev`), then write the new number here. */
export const PACKAGES_OF_A_NODE = 97;

/** Licences that allow everyone to use, change and pass on the package. If it offers several licences, one is enough. */
const LICENCES = ['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'BlueOak-1.0.0'];
/**
 * Licences for development tools, which Stockade does not pass on. MPL-2.0 requires that changes of its files are published;
 * CC-BY-4.0 (a table of browsers) requires that its author is named; PSF-2.0 (a port of Python's argparse) requires that its
 * notice is kept.
 */
const LICENCES_OF_TOOLS = [...LICENCES, 'MPL-2.0', 'CC-BY-4.0', 'PSF-2.0'];
/** Reviewed packages that may run a program when they are installed. */
const INSTALL_SCRIPTS = ['esbuild'];

/** The faults of the lock file, one line each. */
export function faultsOf(manifest, lock) {
  const locked = Object.entries(lock.packages).filter(([path]) => path !== '');
  const ofNode = locked.filter(([, entry]) => !entry.dev);
  return [
    ...unpinned(manifest),
    ...locked.flatMap(([path, entry]) => faultsOfOne(path, entry)),
    ...(ofNode.length === PACKAGES_OF_A_NODE
      ? []
      : [
          `a node runs with ${ofNode.length} packages, not ${PACKAGES_OF_A_NODE}: see scripts/locked-packages.mjs`,
        ]),
  ];
}

/** With a range, a new lock file could contain a version that nobody has reviewed. */
function unpinned({ dependencies = {}, devDependencies = {} }) {
  return Object.entries({ ...dependencies, ...devDependencies })
    .filter(([, version]) => !/^(npm:(@[\w.-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
    .map(([name, version]) => `${name} is ${version}: package.json must name one version`);
}

function faultsOfOne(path, { version, integrity, resolved, license, dev, hasInstallScript }) {
  const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const faults = [];
  if (!/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? '')) faults.push('has no SHA-512 hash');
  if (resolved !== undefined) faults.push('names the registry that one machine downloaded it from');
  if (!isAllowed(license, dev ? LICENCES_OF_TOOLS : LICENCES)) {
    faults.push(`has the licence ${license ?? '(none)'}, which nobody has reviewed`);
  }
  if (hasInstallScript && !INSTALL_SCRIPTS.includes(name)) faults.push('runs a program when it is installed');
  return faults.map((fault) => `${name} ${version} ${fault}`);
}

function isAllowed(license = '', allowed) {
  return license
    .replace(/^\(|\)$/g, '')
    .split(' OR ')
    .some((one) => allowed.includes(one));
}
