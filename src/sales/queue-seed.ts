import { randomBytes } from 'node:crypto';

const SEED_BYTES = 32;

/** The seed of a sale's draw. It is made before anybody can have a place, so nobody can choose an order with it. */
export const newSeed = () => randomBytes(SEED_BYTES);
