/**
 * Metadata of sales and orders: an object of whatever the shop wants. It is stored as JSON, and comes back as it was given.
 *
 * So a value that JSON or JavaScript would change is refused when it comes in. It is not refused in a log, to which an older
 * version may have written a number that it had rounded.
 */
import { z } from 'zod';
import { isStorable } from '../storable.ts';

const MAX_DEPTH = 32;

/** Level by level, because recursion into thousands of levels would exhaust the stack. */
function depthOf(value: unknown): number {
  let depth = 0;
  for (let level: unknown[] = [value]; level.length > 0 && depth <= MAX_DEPTH; depth++) {
    level = level.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []));
  }
  return depth;
}

function stringsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => [key, ...stringsOf(item)]);
}

/** All numbers that are in it, at any depth. */
function numbersOf(value: unknown): number[] {
  if (typeof value === 'number') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(numbersOf) : [];
}

/** From 2^53 on, several whole numbers are one and the same in JavaScript. */
function isKept(value: number): boolean {
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Whether all of it is what JSON has. A program may give dates, maps and the like. A member `undefined` is as if left out. */
function isJson(value: unknown): boolean {
  switch (typeof value) {
    case 'object':
      if (value === null) return true;
      if (Array.isArray(value)) return [...value].every(isJson);
      return isPlainObject(value) && Object.values(value).every((item) => item === undefined || isJson(item));
    case 'string':
    case 'number':
    case 'boolean':
      return true;
    default:
      return false;
  }
}

/** Not `z.record`, which drops a member `__proto__`. */
const object = () =>
  z
    .custom<Record<string, unknown>>(isPlainObject, {
      error: 'must be an object, such as {"gate":"A"}',
      abort: true,
    })
    .refine((value) => depthOf(value) <= MAX_DEPTH, {
      error: `must be nested at most ${MAX_DEPTH} deep`,
      abort: true,
    });

type Metadata = z.ZodType<Record<string, unknown>>;

const bounded = (schema: Metadata, maxBytes: number) =>
  schema
    .refine((value) => Buffer.byteLength(JSON.stringify(value)) <= maxBytes, {
      error: `must have at most ${maxBytes} bytes as JSON`,
    })
    .refine((value) => stringsOf(value).every(isStorable), {
      error: 'must hold well-formed text without NUL characters',
    });

/** Metadata that the shop gives, with a limit on its bytes as JSON. The result is a copy, which the shop can't change. */
export function metadataOf(maxBytes: number) {
  const schema = object()
    .refine(isJson, {
      error: 'must hold only what JSON has: text, numbers, true, false, null, arrays and plain objects',
      abort: true,
    })
    .refine((value) => numbersOf(value).every(isKept), {
      error: `must hold only numbers that are not rounded: whole ones up to ${Number.MAX_SAFE_INTEGER}, others of at most 15 digits. Give longer ones as text`,
    });
  return bounded(schema, maxBytes).transform(
    (value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>,
  );
}

/** Metadata from a log, with a limit on its bytes. */
export function loggedMetadata(maxBytes: number) {
  return bounded(object(), maxBytes);
}
