/** Lists that a command shows page by page. */
import { Option } from 'commander';
import { MAX_PAGE } from '../../operations/checked-input.ts';
import { note } from './output.ts';

export const PAGE_OPTIONS = [
  new Option('--limit <n>', `entries in a page, from 1 to ${MAX_PAGE}`),
  new Option('--after <id>', 'begin after this entry: `next` of the page before'),
];

export function noteMore(next: string | undefined): void {
  if (next !== undefined) note(`More follow: add --after ${next}`);
}
