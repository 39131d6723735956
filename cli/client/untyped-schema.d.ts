/**
 * Stands in for the types of the API while they are not generated (`npm run dashboard:client`), so that a fresh
 * checkout type-checks; `npm run typecheck` generates them first.
 */
export type paths = any
export type components = any
