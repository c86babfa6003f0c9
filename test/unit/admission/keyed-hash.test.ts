import { expect, test } from 'vitest';
import { KeyedHash } from '../../../src/admission/keyed-hash.ts';

const KEY = Uint8Array.of(0, 1, 2, 3, 4, 5, 6, 7);

test('the keyed hash is HalfSipHash-2-4', () => {
  const hash = new KeyedHash(KEY);
  const hex = (text: string) => {
    hash.of(text);
    const bytes = Buffer.alloc(8);
    bytes.writeInt32LE(hash.low, 0);
    bytes.writeInt32LE(hash.high, 4);
    return bytes.toString('hex');
  };
  const upTo = (length: number) => String.fromCharCode(...Array.from({ length }, (_, i) => i));
  // Vectors of the authors' reference.
  expect(hex(upTo(0))).toBe('218d1f59b9b83cc8');
  expect(hex(upTo(1))).toBe('be552412f8387315');
  expect(hex(upTo(2))).toBe('064f39ef7c50eb57');
  expect(hex(upTo(3))).toBe('ce0f1a45f7060679');
  expect(hex(upTo(4))).toBe('d5e78a175be52ea1');
  expect(hex(upTo(7))).toBe('ff202728b07bc684');
  expect(hex(upTo(8))).toBe('edfee820bce4858c');
});
