// What must hold of package-lock.json, and needs no network to be known: what is installed is what was looked at once.

/** It rises when something new comes in: look at what that is with `npm ls --all --omit=dev`, then write the new number. */
export const PACKAGES_OF_A_NODE = 86;

/** Licences under which anybody may use, change and pass on. One of several that a package offers is enough. */
const LICENCES = ['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'BlueOak-1.0.0'];
/**
 * For tools that are not passed on: MPL-2.0 would have changes of their own files published, CC-BY-4.0 (a table of browsers)
 * would have its author named.
 */
const LICENCES_OF_TOOLS = [...LICENCES, 'MPL-2.0', 'CC-BY-4.0'];
/** Packages that may run a program of theirs when they are installed, each looked at. */
const INSTALL_SCRIPTS = ['esbuild'];

/** What is wrong with what is locked, one line each; none if all holds. */
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

/** A range would let in what nobody has looked at, as soon as the lock file is made anew. */
function unpinned({ dependencies = {}, devDependencies = {} }) {
  return Object.entries({ ...dependencies, ...devDependencies })
    .filter(([, version]) => !/^(npm:(@[\w.-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
    .map(([name, version]) => `${name} is ${version}: package.json must name one version`);
}

function faultsOfOne(path, { version, integrity, resolved, license, dev, hasInstallScript }) {
  const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const faults = [];
  if (!/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? '')) faults.push('has no SHA-512 hash');
  if (resolved !== undefined) faults.push('names the place that one machine has loaded it from');
  if (!isAllowed(license, dev ? LICENCES_OF_TOOLS : LICENCES)) {
    faults.push(`has the licence ${license ?? '(none)'}, which nobody has looked at`);
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
