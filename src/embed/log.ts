import { hideArguments, type Log } from '../node/process/log.ts';
import type { Logger, LogLine } from './options.ts';

const nothing = () => {};

/** @param logger without one, nothing is logged */
export function logTo(logger: Logger | undefined): Log {
  if (!logger) return { debug: nothing, info: nothing, warn: nothing, error: nothing };
  return {
    debug: nothing,
    info: writer((details, message) => logger.info(details, message)),
    warn: writer((details, message) => logger.warn(details, message)),
    error: writer((details, message) => logger.error(details, message)),
  };
}

/** What the program's logger throws is dropped: it would end a loop in the background, and then perhaps the program. */
function writer(line: LogLine): Log['info'] {
  return (first, message = '') => {
    const details = typeof first === 'string' ? {} : first;
    hideArguments((details as { err?: { command?: { name?: string } } }).err);
    try {
      const written: unknown = line(details, typeof first === 'string' ? first : message);
      if (written instanceof Promise) written.catch(nothing);
    } catch {}
  };
}
