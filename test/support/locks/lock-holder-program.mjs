// Holds a lock until it ends. On SIGUSR2 it writes with its token, whatever it knows of its lock. Each line that it
// prints is a JSON object: { ready, token } first, then { written } or { lost }.
import { Redis } from 'ioredis';
import { fenced } from '../../../dist/locks/fenced.js';
import { Locks } from '../../../dist/locks/locks.js';

const { url, name, ttlMs } = JSON.parse(process.argv[2]);
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const redis = new Redis(url);
const locks = await Locks.open({ url, ttlMs });
const handle = await locks.lock(name);
handle.signal.addEventListener('abort', () => say({ lost: String(handle.signal.reason) }));
process.on('SIGUSR2', async () => {
  const script = fenced("return redis.call('SET', KEYS[1], ARGV[1])");
  const write = redis.eval(script, 2, `${name}:fence`, `${name}:value`, handle.token, 'from the holder');
  say({ written: await write.catch((error) => error.message) });
});
say({ ready: true, token: handle.token });
