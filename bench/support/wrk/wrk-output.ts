/** Parses the output of wrk with `--latency`. */

export interface WrkReport {
  /** Answers that were read, whatever their status. */
  readonly requests: number;
  readonly requestsPerSecond: number;
  /** Bytes of all answers, to three digits. */
  readonly bytes: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Answers with a status of 400 or above. */
  readonly errorStatuses: number;
  readonly socketErrors: SocketErrors;
}

export interface SocketErrors {
  readonly connect: number;
  readonly read: number;
  readonly write: number;
  /** Answers that took longer than wrk's `--timeout`. */
  readonly timeout: number;
}

const BYTES_PER_UNIT: Readonly<Record<string, number>> = { '': 1, K: 1_024, M: 1_024 ** 2, G: 1_024 ** 3 };
const MS_PER_UNIT: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** @throws Error if a line is missing that wrk always prints */
export function parseWrkOutput(text: string): WrkReport {
  const number = (pattern: RegExp) => Number(found(text, pattern)[1]);
  return {
    requests: number(/^\s*(\d+) requests in /m),
    requestsPerSecond: number(/^Requests\/sec:\s+([\d.]+)/m),
    bytes: bytesRead(text),
    p50Ms: percentileMs(text, 50),
    p99Ms: percentileMs(text, 99),
    errorStatuses: Number(/^\s*Non-2xx or 3xx responses: (\d+)/m.exec(text)?.[1] ?? 0),
    socketErrors: socketErrors(text),
  };
}

function bytesRead(text: string): number {
  const [, value, unit] = found(text, /^\s*\d+ requests in [\d.]+\w+, ([\d.]+)([KMG]?)B read/m);
  return Number(value) * BYTES_PER_UNIT[unit!]!;
}

function percentileMs(text: string, percentile: number): number {
  const [, value, unit] = found(
    text,
    new RegExp(`^\\s*${percentile}(?:\\.0+)?%\\s+([\\d.]+)(us|ms|s|m|h)\\b`, 'm'),
  );
  return Number(value) * MS_PER_UNIT[unit!]!;
}

function socketErrors(text: string): SocketErrors {
  const match = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(text);
  const [connect = 0, read = 0, write = 0, timeout = 0] = match?.slice(1).map(Number) ?? [];
  return { connect, read, write, timeout };
}

function found(text: string, pattern: RegExp): RegExpExecArray {
  const match = pattern.exec(text);
  if (!match) throw new Error(`wrk's output has no line like ${pattern}:\n${text}`);
  return match;
}
