import { describe, expect, test } from 'vitest';
import { EntriesHash } from '../../../../src/queue/draw/entries-hash.ts';
import { type Entry, entryDigest, entrySalt, newSaltKey } from '../../../../src/queue/draw/entry-digest.ts';
import { commitmentOf, newSeed } from '../../../../src/queue/draw/seed.ts';

const KEY = Uint8Array.from({ length: 32 }, (_, i) => i);

describe('a seed', () => {
  test('is random, and has a commitment that sha256sum gives too', () => {
    expect(newSeed()).toHaveLength(32);
    expect(newSeed()).not.toEqual(newSeed());
    expect(commitmentOf(KEY)).toBe('630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd');
  });
});

describe('an entry', () => {
  const ALICE: Entry = { saleId: 'tickets', number: 17, buyerId: 'alice' };

  test('has a salt, and the digest that a shell gives: printf "$salt tickets 17 alice" | sha256sum', () => {
    const salt = entrySalt(KEY, ALICE);
    expect(salt).toBe('a4207d5fcb8950057dfe7c41045a7382');
    expect(entryDigest(salt, ALICE)).toBe('c05abec639d97af171b5bba110f3816764d31c5687d44c0fc73cfb1a91f269f2');
  });

  test.each<[string, Partial<Entry>]>([
    ['sale', { saleId: 'tickets2' }],
    ['number', { number: 18 }],
    ['buyer', { buyerId: 'bob' }],
  ])('has another salt and another digest with another %s', (_, change) => {
    const other = { ...ALICE, ...change };
    const salt = entrySalt(KEY, ALICE);
    expect(entrySalt(KEY, other)).not.toBe(salt);
    expect(entryDigest(salt, other)).not.toBe(entryDigest(salt, ALICE));
  });

  test('has another salt with another key', () => {
    expect(entrySalt(newSaltKey(), ALICE)).not.toBe(entrySalt(newSaltKey(), ALICE));
  });
});

describe('the hash of the entries', () => {
  const DIGEST = 'a'.repeat(64);
  const hashOf = (digests: readonly (string | null)[], saleId = 'tickets') => {
    const hash = new EntriesHash(saleId);
    for (const digest of digests) hash.add(digest);
    return hash.value();
  };

  test('is the one that sha256sum gives', () => {
    // printf 'stockade-draw 1 tickets\n' | sha256sum
    expect(hashOf([])).toBe('94d6680ebff3d842ef658a84d7c80f0b55ec15b59648d2610fcd25d83f0fd543');
    // printf 'stockade-draw 1 tickets\n1 aa…\n2 -\n' | sha256sum
    expect(hashOf([DIGEST, null])).toBe('2461f9d6ad04964d7ed04803c4265247ff8e0385c4ad23e60acecafc38c2036b');
  });

  test('differs with the sale and with the order', () => {
    expect(hashOf([DIGEST, null], 'other')).not.toBe(hashOf([DIGEST, null]));
    expect(hashOf([null, DIGEST])).not.toBe(hashOf([DIGEST, null]));
  });

  test('can be asked for between entries', () => {
    const hash = new EntriesHash('tickets');
    for (let i = 1; i <= 600; i++) {
      hash.add(DIGEST);
      if (i % 250 === 0) expect(hash.value()).toBe(hashOf(Array(i).fill(DIGEST)));
    }
    expect(hash.entries).toBe(600);
    expect(hash.value()).toBe(hashOf(Array(600).fill(DIGEST)));
  });
});
