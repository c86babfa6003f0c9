import { World, runToEnd } from './world.ts';
import { install, time, realMs } from './virtual-time.ts';
import { installNetwork } from './network.ts';
const world = await World.open();
install(); installNetwork();
const { runSeed, watchUnhandled } = await import('./run.ts');
const { DATABASE_URL } = await import('./sim-node.ts');
const { openDatabase } = await import('../../src/sync/database.ts');
const { migrate } = await import('../../src/sync/migrate.ts');
time.begin(0);
await runToEnd(async () => { const db = openDatabase({url: DATABASE_URL, maxConnections: 2}); await migrate(db); await db.destroy(); });
watchUnhandled();
const [first, count] = process.argv.slice(2).map(Number) as [number, number];
const trace = process.argv[4] ? (l: string) => console.log(l) : undefined;
const t0 = realMs(); const c0 = process.cpuUsage();
for (let s = first; s < first + count; s++) {
  const t = realMs();
  const r = await runSeed(world, s, trace);
  if (r.violation || count < 20) console.log(s, r.hash, r.events, (realMs()-t).toFixed(0), 'ms', time.now.toFixed(0), r.violation?.slice(0, 700) ?? '');
}
const c = process.cpuUsage(c0);
console.log('cpu/seed', ((c.user+c.system)/1000/count).toFixed(0), 'wall', ((realMs()-t0)/count).toFixed(0));
process.exit(0);
