/** Whether the program is this module, and not one that imports it. */
export function isMain(moduleUrl: string): boolean;
