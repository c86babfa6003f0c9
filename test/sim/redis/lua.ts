/** Runs the product's scripts as Redis does: each atomically, with `redis.call`, KEYS and ARGV. */
import { createHash } from 'node:crypto';
// @ts-expect-error: it has no types.
import fengari from 'fengari';
import { type MiniRedis, type Reply, ReplyFault } from './mini-redis.ts';

const { lua, lauxlib, lualib, to_luastring: toLua, to_jsstring: toText } = fengari;
type State = object;

export function sha1(source: string): string {
  return createHash('sha1').update(source).digest('hex');
}

export class Lua {
  readonly #state: State = lauxlib.luaL_newstate();
  readonly #compiled = new Map<string, number>();
  #redis: MiniRedis | undefined;

  constructor() {
    const L = this.#state;
    lualib.luaL_openlibs(L);
    lauxlib.luaL_dostring(L, toLua('unpack = table.unpack'));
    lua.lua_newtable(L);
    this.#define('call', () => this.#call((fault) => this.#raise(fault)));
    this.#define('pcall', () => this.#call((fault) => this.#faultTable(fault)));
    this.#define('error_reply', () => {
      lua.lua_newtable(L);
      lua.lua_pushvalue(L, 1);
      lua.lua_setfield(L, -2, toLua('err'));
      return 1;
    });
    lua.lua_setglobal(L, toLua('redis'));
  }

  /** @throws ReplyFault */
  run(redis: MiniRedis, source: string, keys: readonly string[], args: readonly string[]): Reply {
    const L = this.#state;
    this.#redis = redis;
    const top = lua.lua_gettop(L);
    try {
      this.#global('KEYS', keys);
      this.#global('ARGV', args);
      lua.lua_rawgeti(L, lua.LUA_REGISTRYINDEX, this.#function(source));
      if (lua.lua_pcall(L, 0, 1, 0) !== lua.LUA_OK) throw new ReplyFault(this.#fault());
      return this.#reply(-1);
    } finally {
      lua.lua_settop(L, top);
    }
  }

  #define(name: string, run: () => number): void {
    lua.lua_pushcfunction(this.#state, run);
    lua.lua_setfield(this.#state, -2, toLua(name));
  }

  #function(source: string): number {
    const known = this.#compiled.get(source);
    if (known !== undefined) return known;
    if (lauxlib.luaL_loadstring(this.#state, toLua(source)) !== lua.LUA_OK) {
      throw new ReplyFault(`ERR Error compiling script: ${toText(lua.lua_tostring(this.#state, -1))}`);
    }
    const compiled = lauxlib.luaL_ref(this.#state, lua.LUA_REGISTRYINDEX);
    this.#compiled.set(source, compiled);
    return compiled;
  }

  #global(name: string, values: readonly string[]): void {
    this.#push(values);
    lua.lua_setglobal(this.#state, toLua(name));
  }

  /** `redis.call`: takes its arguments from the C function. */
  #call(failed: (fault: ReplyFault) => number): number {
    const L = this.#state;
    const words: string[] = [];
    for (let i = 1; i <= lua.lua_gettop(L); i++) words.push(this.#word(i));
    try {
      this.#push(this.#redis!.call(words[0]!, words.slice(1)));
    } catch (error) {
      if (!(error instanceof ReplyFault)) throw error;
      return failed(error);
    }
    return 1;
  }

  #raise({ message }: ReplyFault): number {
    lua.lua_pushstring(this.#state, toLua(message));
    return lua.lua_error(this.#state);
  }

  #faultTable({ message }: ReplyFault): number {
    lua.lua_newtable(this.#state);
    lua.lua_pushstring(this.#state, toLua(message));
    lua.lua_setfield(this.#state, -2, toLua('err'));
    return 1;
  }

  /** Redis' Lua writes whole numbers without a decimal point. */
  #word(at: number): string {
    const L = this.#state;
    if (lua.lua_type(L, at) !== lua.LUA_TNUMBER) return toText(lua.lua_tostring(L, at));
    return String(lua.lua_tonumber(L, at));
  }

  #push(value: Reply): void {
    const L = this.#state;
    if (value === null) lua.lua_pushboolean(L, false);
    else if (typeof value === 'number') lua.lua_pushnumber(L, value);
    else if (typeof value === 'string') lua.lua_pushstring(L, toLua(value));
    else if (Array.isArray(value)) {
      lua.lua_createtable(L, value.length, 0);
      for (const [i, one] of value.entries()) {
        this.#push(one);
        lua.lua_rawseti(L, -2, i + 1);
      }
    } else {
      lua.lua_newtable(L);
      lua.lua_pushstring(L, toLua((value as { ok: string }).ok));
      lua.lua_setfield(L, -2, toLua('ok'));
    }
  }

  #reply(at: number): Reply {
    const L = this.#state;
    switch (lua.lua_type(L, at)) {
      case lua.LUA_TNUMBER:
        return Math.trunc(lua.lua_tonumber(L, at));
      case lua.LUA_TSTRING:
        return toText(lua.lua_tostring(L, at));
      case lua.LUA_TBOOLEAN:
        return lua.lua_toboolean(L, at) ? 1 : null;
      case lua.LUA_TTABLE:
        return this.#table(lua.lua_absindex(L, at));
      default:
        return null;
    }
  }

  #table(at: number): Reply {
    const L = this.#state;
    lua.lua_getfield(L, at, toLua('err'));
    if (lua.lua_type(L, -1) === lua.LUA_TSTRING) throw new ReplyFault(toText(lua.lua_tostring(L, -1)));
    lua.lua_pop(L, 1);
    const values: Reply[] = [];
    for (let i = 1; ; i++) {
      lua.lua_rawgeti(L, at, i);
      const isEnd = lua.lua_type(L, -1) === lua.LUA_TNIL;
      if (!isEnd) values.push(this.#inner(this.#reply.bind(this, -1)));
      lua.lua_pop(L, 1);
      if (isEnd) return values;
    }
  }

  /** Redis replies an error inside a list as such. No caller expects one there. */
  #inner(reply: () => Reply): Reply {
    try {
      return reply();
    } catch (error) {
      throw new Error('a script replies a list with an error in it', { cause: error });
    }
  }

  #fault(): string {
    const L = this.#state;
    const text = lua.lua_type(L, -1) === lua.LUA_TSTRING ? toText(lua.lua_tostring(L, -1)) : 'ERR unknown';
    return /^[A-Z]+ /.test(text) ? text : `ERR ${text}`;
  }
}
