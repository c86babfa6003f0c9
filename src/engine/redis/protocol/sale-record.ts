/** A sale as Redis stores it: the fields of its key. */
import type { Sale, SaleRecord, SaleState, SaleVersion } from '../../contract.ts';
import { MAX_PER_BUYER_LIMIT, MAX_SEGMENTS } from '../../limits.ts';
import { rulesOf } from '../../sale/rules.ts';
import { corrupt, decodeCount, parsedJson } from './codec.ts';

const STATES = ['open', 'paused', 'closed'] satisfies SaleState[] as string[];

type Field = string | null | undefined;

/** `undefined` where a field is missing. @throws BackendCorrupt */
export function decodeVersion(epoch: Field, generation: Field, state: Field): SaleVersion | undefined {
  if (!epoch || !generation || !state) return undefined;
  if (!STATES.includes(state)) return corrupt('the state of a sale is', state);
  return {
    epoch: decodeCount(epoch),
    generation: decodeCount(generation),
    state: state as SaleState,
  };
}

/** As `decodeVersion`. */
export function decodeSaleRecord(saleId: string, definition: Field, version: SaleVersion | undefined) {
  if (!definition || !version) return undefined;
  return { ...decodeDefinition(saleId, definition), ...version } satisfies SaleRecord;
}

/**
 * The definition with the rules that its segments apply. Older versions of Stockade write no rules here, and none to the
 * segments.
 */
export function encodeDefinition(sale: Sale): string {
  return JSON.stringify({ ...sale, rules: rulesOf(sale) });
}

function decodeDefinition(saleId: string, definition: string): Pick<SaleRecord, 'sale' | 'rules'> {
  const found = parsedJson(definition);
  if (!isSale(found, saleId)) return corrupt(`the definition of sale ${saleId} is`, definition);
  const { rules, ...sale } = found as Sale & { readonly rules?: unknown };
  return typeof rules === 'string' ? { sale, rules } : { sale };
}

/** Checks the fields that a node relies on when it sells. */
function isSale(value: unknown, saleId: string): value is Sale {
  const { id, segments, perBuyerLimit, requireToken, startsAt, endsAt, queue } = (value ?? {}) as {
    [K in keyof Sale]?: unknown;
  };
  return (
    id === saleId &&
    isWhole(segments, MAX_SEGMENTS) &&
    isWhole(perBuyerLimit, MAX_PER_BUYER_LIMIT) &&
    // Missing in records of versions without purchase tokens.
    (requireToken === undefined || typeof requireToken === 'boolean') &&
    isTime(startsAt) &&
    (endsAt === undefined || isTime(endsAt)) &&
    (queue === undefined || (typeof queue === 'object' && queue !== null))
  );
}

function isWhole(value: unknown, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= most;
}

/** Milliseconds that a date can hold. */
function isTime(value: unknown): boolean {
  return typeof value === 'number' && !Number.isNaN(new Date(value).getTime());
}
