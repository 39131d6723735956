import { readEndpoints } from './routes.ts'

/** What the build puts into `#endpoints`, for tests that run without it. */
export const endpoints = readEndpoints()
