/** What the process itself holds, under the names that every exporter uses. */
import { readdirSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { Gauge, type Registry } from 'prom-client';

/** Linux only: each name is an open handle. */
const OWN_HANDLES = '/proc/self/fd';

export function watchProcess(registry: Registry): void {
  const registers = [registry];
  new Gauge({
    name: 'process_resident_memory_bytes',
    help: 'Memory of the process, all threads, that is in RAM',
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  new Gauge({
    name: 'nodejs_heap_size_used_bytes',
    help: "What the main thread's heap holds, live or not collected yet",
    registers,
    collect() {
      this.set(getHeapStatistics().used_heap_size);
    },
  });
  if (process.platform !== 'linux') return;
  new Gauge({
    name: 'process_open_fds',
    help: 'Files and sockets that are open',
    registers,
    collect() {
      this.set(readdirSync(OWN_HANDLES).length);
    },
  });
}
