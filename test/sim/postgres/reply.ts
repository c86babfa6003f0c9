/**
 * The first column of the first row of a reply, which is JSON or null. @throws the error that Postgres answered
 * instead
 */
export function firstValue<T>(reply: Buffer): T | undefined {
  for (let at = 0; at < reply.length; at += reply.readUInt32BE(at + 1) + 1) {
    const kind = String.fromCharCode(reply[at]!);
    if (kind === 'E') throw new Error(reply.toString('utf8', at + 5).replaceAll('\0', ' '));
    if (kind !== 'D') continue;
    const length = reply.readInt32BE(at + 7);
    return length < 0 ? undefined : (JSON.parse(reply.toString('utf8', at + 11, at + 11 + length)) as T);
  }
  return undefined;
}
