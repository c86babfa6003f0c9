/** Imports a module that is not in the bundle of the program, in which `import()` can't be called (run-bundle.ts). */
export function importModule<T>(specifier: string): Promise<T> {
  return import(specifier);
}
