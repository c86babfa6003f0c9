/** What the people in a queue were told: all that the checker may use besides Postgres. Times are those of the machine's clock. */

export type ToldState = 'waiting' | 'hopeless' | 'offered' | 'bought' | 'lapsed' | 'left' | 'closed';

/** Places in these states never change again. */
export const FINAL: ReadonlySet<ToldState> = new Set(['bought', 'lapsed', 'left', 'closed']);

/** One answer about a place. */
export interface Told {
  /** When its request was sent. So the place was in this state then, or came into it later. */
  readonly askedAtMs: number;
  readonly number: number;
  readonly state: ToldState;
  /** Missing unless the place waits, and before the draw. */
  readonly rank?: number | undefined;
}

export interface ShownOffer {
  readonly number: number;
  readonly orderId: string;
  readonly token: string;
  readonly untilMs: number;
}

/** What the answers to an attempt to accept said. */
export interface Acceptance {
  readonly orderId: string;
  readonly answeredAtMs: number;
  readonly outcome: 'accepted' | 'too late';
}

/** All that one person remembers. */
export interface Memory {
  readonly buyerId: string;
  /** Answers in the order in which they came. */
  readonly told: Told[];
  /** When requests were sent about the place that were answered: the person was heard of. */
  readonly heardAtMs: number[];
  /** By order. */
  readonly offers: Map<string, ShownOffer>;
  readonly acceptances: Acceptance[];
  /** Whether the person has asked to leave, answered or not. */
  askedToLeave: boolean;
  /** Orders that the person has asked to cancel, answered or not. */
  readonly cancelled: Set<string>;
}

export function newMemory(buyerId: string): Memory {
  return {
    buyerId,
    told: [],
    heardAtMs: [],
    offers: new Map(),
    acceptances: [],
    askedToLeave: false,
    cancelled: new Set(),
  };
}
