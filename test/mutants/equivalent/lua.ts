/** Equivalent mutants of the scripts, in src/engine/redis/lua and src/locks/lua (../equivalent.ts). */
import type { Equivalent } from '../equivalent.ts';

export const LUA: readonly Equivalent[] = [
  {
    file: 'src/engine/redis/lua/parts/batch-lines.lua',
    mutator: 'OperandDropped',
    original: "quantity == '1' and 1 or tonumber(quantity)",
    replacement: 'tonumber(quantity)',
    why: 'the same number, by a call that most orders save',
  },
  {
    file: 'src/engine/redis/lua/purchase/take.lua',
    mutator: 'OperandDropped',
    original: "quantity == 1 and '1' or string.format('%d', quantity)",
    replacement: "string.format('%d', quantity)",
    why: 'the same text, by a call that most orders save',
  },
  {
    file: 'src/locks/lua/acquire.lua',
    mutator: 'NumberShifted',
    original: '0',
    replacement: '1',
    why: 'the clock is far ahead of either number',
  },
];
