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

function writer(line: LogLine): Log['info'] {
  return (first, message = '') => {
    if (typeof first === 'string') return line({}, first);
    hideArguments((first as { err?: { command?: { name?: string } } }).err);
    line(first, message);
  };
}
