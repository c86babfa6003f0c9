/**
 * Preloaded into every thread of the node that a soak watches: SIGUSR2 collects the garbage of all of them, so that what
 * their heaps hold afterwards is in use.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BroadcastChannel, isMainThread } from 'node:worker_threads';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
const threads = new BroadcastChannel('soak-collect');
threads.onmessage = () => collect();
threads.unref();
if (isMainThread) {
  process.on('SIGUSR2', () => {
    threads.postMessage('collect');
    collect();
  });
}
