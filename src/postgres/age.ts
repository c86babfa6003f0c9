/**
 * SQL: seconds since this time. A time in the future was written before the clock of Postgres was set back, so its age is not known.
 * It counts as far back as it is ahead: what waits for an age must not wait until the clock has caught up.
 */
export const secondsSince = (time: string): string => `abs(extract(epoch FROM now() - ${time}))`;
