// Opens PGlite in a folder and nothing else: the part of a start that is not Stockade's.
import { PGlite } from '@electric-sql/pglite';

const db = await PGlite.create({ dataDir: process.argv[2] });
await db.query('SELECT 1');
console.log(JSON.stringify({ ready: true }));
process.on('SIGTERM', () => db.close().then(() => process.exit(0)));
setInterval(() => {}, 1_000);
