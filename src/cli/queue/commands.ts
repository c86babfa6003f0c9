import { checkQueue } from './check.ts';
import { drawFile } from './draw.ts';
import { OFFER_COMMANDS } from './offers.ts';
import { listPlaces } from './places.ts';
import { showQueue } from './show.ts';

export const QUEUE_COMMANDS = [showQueue, listPlaces, ...OFFER_COMMANDS, drawFile, checkQueue];
