/** Answers, ready to be written: whole, in pieces, or pushed as things happen. */
import type { KINDS, ProblemCode } from './problem-kinds.ts';

/** Status line and headers, in the forms that the two servers need. */
export interface Head {
  /** For uWebSockets.js, in one piece: a call for each header would cost more than all else in a refusal. */
  readonly text: string;
  /** The same, encoded: uWebSockets.js copies bytes faster than it encodes a string. */
  readonly bytes: Uint8Array;
  readonly reason: string;
  /** For `node:http`: names and values in turn. */
  readonly fields: readonly string[];
}

/** A response ready to be written. */
export interface Reply {
  readonly status: number;
  /** From `headOf`. */
  readonly head: Head;
  readonly body: string;
  /** The same, encoded; only in replies that are sent many times. */
  readonly bytes?: Uint8Array;
  /** A `204` or `304`: it has neither a body nor a length. */
  readonly isBodiless?: boolean;
}

/** A reply that is counted by what it says. */
export interface CountedReply extends Reply {
  /** The code of a problem, or the state of a place. */
  readonly outcome: string;
}

/** For a reply that is sent many times: encodes its body once. */
export function sentOften<R extends Reply>(reply: R): R {
  return { ...reply, bytes: Buffer.from(reply.body) };
}

/** Every status that an answer can have. */
export type Status = 200 | 201 | 202 | 204 | 304 | (typeof KINDS)[ProblemCode]['status'];

const REASONS: Readonly<Record<Status, string>> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  204: 'No Content',
  304: 'Not Modified',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  413: 'Content Too Large',
  422: 'Unprocessable Content',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

/** @param headers their values must not come from a client: nothing is escaped */
export function headOf(status: Status, headers: Readonly<Record<string, string>>): Head {
  const reason = REASONS[status];
  const { text: lines, fields } = linesOf(headers);
  const text = `${status} ${reason}${lines}`;
  return { text, bytes: Buffer.from(text), reason, fields };
}

/** Headers of a stream of server-sent events. */
export const EVENT_STREAM = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  // nginx would collect events before it passes them on.
  'x-accel-buffering': 'no',
};

/** Headers without a status line, to be added to a head. */
export interface HeadLines {
  /** Each begins with a line end. */
  readonly text: string;
  readonly fields: readonly string[];
}

/** @param headers as for `headOf` */
export function linesOf(headers: Readonly<Record<string, string>>): HeadLines {
  const entries = Object.entries(headers);
  return { text: entries.map(([name, value]) => `\r\n${name}: ${value}`).join(''), fields: entries.flat() };
}

/** A response of any length, whose pieces are made while the client reads. Its end also closes the connection. */
export interface PiecedReply extends Omit<Reply, 'body'> {
  /** If it throws, the connection is closed without the end of the response. */
  readonly pieces: AsyncIterable<string>;
}

/** Where the pieces of an answer go, as they come. */
export interface Push {
  /**
   * Sends a piece. A client that has not taken the earlier ones is disconnected, so that unread pieces never pile up.
   * @returns false if the client was disconnected for that, or had gone
   */
  push(piece: Uint8Array): boolean;
  /** Ends the answer and its connection. */
  finish(): void;
}

/** A response whose pieces come when something happens. Its end also closes the connection. */
export interface PushedReply extends Omit<Reply, 'body'> {
  /** The head is written. */
  readonly begun: (push: Push) => void;
  /** The response has ended, or the client has gone, perhaps before `begun`. Called once. */
  readonly ended: () => void;
}

export function json(status: Status, value: unknown): Reply {
  return {
    status,
    head: headOf(status, { 'content-type': 'application/json' }),
    body: JSON.stringify(value),
  };
}
