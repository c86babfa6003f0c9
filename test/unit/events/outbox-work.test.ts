import { beforeEach, expect, test } from 'vitest';
import type { Outbox, OutboxPage } from '../../../src/events/outbox.ts';
import { emptyOutbox } from '../../../src/events/outbox-work.ts';

const calls: string[] = [];
let pages: string[][];
/** What another process removes between the look and the read. */
let isContested: boolean;

beforeEach(() => {
  calls.length = 0;
  pages = [];
  isContested = false;
});

const outbox = {
  isEmpty: async () => {
    calls.push('look');
    return pages.length === 0;
  },
  readRows: async (): Promise<OutboxPage> => {
    calls.push('read');
    return { rows: isContested ? [] : pages[0]!, parts: [] };
  },
  remove: async (ids: readonly string[]) => {
    calls.push('remove');
    pages.shift();
    return ids.length;
  },
} as unknown as Outbox;

const step = () =>
  emptyOutbox({ outbox, forWebhook: false, events: { streamed: () => {}, displaced: () => {} } });

test('of an empty outbox no page is read', async () => {
  expect(await step()).toBeUndefined();
  expect(calls).toEqual(['look']);
});

test('a page is read and removed, and the next step follows at once', async () => {
  pages = [['1', '2']];
  expect(await step()).toBe(0);
  expect(calls).toEqual(['look', 'read', 'remove']);
});

test('rows that another process has removed since the look count as none', async () => {
  pages = [['1']];
  isContested = true;
  expect(await step()).toBeUndefined();
  expect(calls).toEqual(['look', 'read']);
});
