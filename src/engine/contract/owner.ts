/** The owner of a shared backend: the database that its sales are in. */
export interface Owner {
  /** Identity of the database. */
  readonly identity: string;
  /** Where the database was when it became the owner, for people to read. */
  readonly label: string;
}

/** A backend's mark of its owner. The backend knows no databases: an owner is a name. */
export interface OwnerMark {
  /** `undefined`: the backend has no owner. */
  read(): Promise<Owner | undefined>;
  /** Sets the owner if there is none. @returns the owner afterwards */
  claim(owner: Owner): Promise<Owner>;
  /** Sets the owner, whatever it was before. */
  replace(owner: Owner): Promise<void>;
  /**
   * Whether sales have ever been changed in the backend. This is lost together with the owner's name, or not at all.
   */
  isUsed(): Promise<boolean>;
  /**
   * The newest generation in which the backend has a record, a tombstone or a segment of the sale; 0 if it has neither record nor
   * tombstone.
   */
  newestGeneration(saleId: string): Promise<number>;
  /**
   * Removes a sale with its logs, whatever its generation: it belongs to another database. Nothing tells a new sale with its id from it,
   * so no process may create one meanwhile.
   */
  discard(saleId: string): Promise<void>;
}
