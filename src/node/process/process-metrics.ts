/** Memory and open files of the process, under the names that Prometheus exporters usually use. */
import { readdirSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { Gauge, type Registry } from 'prom-client';

/** Linux only: each name is an open handle. */
const OWN_HANDLES = '/proc/self/fd';

export function watchProcess(registry: Registry): void {
  const registers = [registry];
  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'RAM that the process uses, with all its threads',
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  new Gauge({
    name: 'nodejs_heap_size_used_bytes',
    help: 'Heap of the main thread, including garbage that is not collected yet',
    registers,
    collect() {
      this.set(getHeapStatistics().used_heap_size);
    },
  });
  if (process.platform !== 'linux') return;
  new Gauge({
    name: 'process_open_fds',
    help: 'Open files and sockets',
    registers,
    collect() {
      this.set(readdirSync(OWN_HANDLES).length);
    },
  });
}
