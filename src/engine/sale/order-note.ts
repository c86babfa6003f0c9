/**
 * What the shop notes with an order: its own reference, and metadata. Nothing in this program depends on either.
 *
 * A note that comes with a purchase goes through the order log to Postgres, as one line of JSON. A purchase without a note
 * is written to the log as before there were notes.
 *
 * The note of a traced purchase also has its trace, for the sync that reads the log. Postgres does not store it.
 */
import { z } from 'zod';
import { text } from '../storable.ts';
import { loggedMetadata, metadataOf } from './metadata.ts';

const MAX_REFERENCE_CHARACTERS = 200;
const MAX_METADATA_BYTES = 4_096;

/** The fields of a note, for schemas. */
export const NOTE_FIELDS = {
  /** Not empty: orders are looked up by it, and an empty one is mostly a variable that is not set. */
  reference: text(MAX_REFERENCE_CHARACTERS).min(1, { error: 'must not be empty' }),
  metadata: metadataOf(MAX_METADATA_BYTES),
};

export interface OrderNote {
  /** One line of at most 200 characters. */
  readonly reference?: string | undefined;
  /** At most 4,096 bytes as JSON. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** What the log says of an order: the shop's note, and for an offer of the queue its place. */
export interface LoggedNote extends OrderNote {
  /** The number of the place that the order is offered to. */
  readonly place?: number | undefined;
}

/** A purchase without a note has this one. */
export const NO_NOTE = '';

const schema = z.strictObject({
  reference: NOTE_FIELDS.reference.optional(),
  metadata: NOTE_FIELDS.metadata.optional(),
});

/** In the form of a `traceparent` (W3C Trace Context). */
const TRACE = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;
const inLog = schema.extend({
  // Older versions took an empty one.
  reference: text(MAX_REFERENCE_CHARACTERS).optional(),
  metadata: loggedMetadata(MAX_METADATA_BYTES).optional(),
  place: z.int().min(1).optional(),
  trace: z.string().regex(TRACE).optional(),
});

/** What is wrong with a note that came with a purchase, by field; empty: nothing. */
export function faultsOf(note: { readonly reference?: unknown; readonly metadata?: unknown }) {
  const parsed = schema.safeParse(note);
  return parsed.success
    ? []
    : parsed.error.issues.map(({ path, message }) => ({ field: path.join('.'), problem: message }));
}

/** The note as one line of JSON. */
export function encodeNote({ reference, metadata, place }: LoggedNote): string {
  return reference === undefined && metadata === undefined && place === undefined
    ? NO_NOTE
    : JSON.stringify({ reference, metadata, place });
}

/** @param note from `encodeNote` @param trace of the span that follows the purchase, in the form of a `traceparent` */
export function withTrace(note: string, trace: string): string {
  const fields = note === NO_NOTE ? '{' : `${note.slice(0, -1)},`;
  return `${fields}"trace":"${trace}"}`;
}

/** The trace in a note; `undefined`: the purchase is not traced. */
export function traceOf(note: string | undefined): string | undefined {
  return note ? (JSON.parse(note) as { readonly trace?: string }).trace : undefined;
}

/** Whether a line is what the functions above write: others may write to the log too. */
export function isNote(line: string): boolean {
  try {
    return inLog.safeParse(JSON.parse(line)).success;
  } catch {
    return false;
  }
}
