/** How the kinds of the outbox are called by those who receive events: as SQL. @param column the kind */
export function kindIn(column: string): string {
  return `CASE ${column} WHEN 'offered' THEN 'offer.made' WHEN 'lapsed' THEN 'offer.lapsed' WHEN 'declined' THEN 'offer.declined'
    ELSE 'order.' || ${column} END`;
}
