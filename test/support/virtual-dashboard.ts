/** What the build puts into `#dashboard`, for tests that run without it: where the built pages are looked for. */
export const origin = import.meta.url
