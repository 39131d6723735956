/** Row of `meta` by which a database says that it was restored, and that the rest is still to come back. */
export const RECOVERY_KEY = 'recovery'
