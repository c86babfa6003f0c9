/** Whose a backend is that others can reach too: the database that its sales are in. */
export interface Owner {
  /** Identity of the database. */
  readonly identity: string;
  /** Where it was when it became the owner, for people. */
  readonly label: string;
}

/** What a backend says of its owner. It knows no databases: an owner is a name here. */
export interface OwnerMark {
  /** `undefined`: it has none. */
  read(): Promise<Owner | undefined>;
  /** Makes it this owner's if it has none. @returns whose it is then */
  claim(owner: Owner): Promise<Owner>;
  /** Makes it this owner's, whoever's it was. */
  replace(owner: Owner): Promise<void>;
  /** Whether sales have changed in it, since this is counted. Lost together with the owner's name, or not at all. */
  isUsed(): Promise<boolean>;
  /** Removes a sale with its logs, of whatever generation: it is another database's. */
  discard(saleId: string): Promise<void>;
}
