/** What is text under another name; images, fonts and archives are compressed already. */
const TYPES = [
  'text/html',
  'text/plain',
  'text/css',
  'text/javascript',
  'text/xml',
  'text/csv',
  'text/markdown',
  'application/javascript',
  'application/json',
  'application/ld+json',
  'application/manifest+json',
  'application/problem+json',
  'application/xml',
  'application/rss+xml',
  'application/atom+xml',
  'application/xhtml+xml',
  'application/graphql-response+json',
  'application/wasm',
  'image/svg+xml',
]

/**
 * Answers of apps that did not compress themselves are compressed for clients that take gzip. Only whole
 * answers with status 200 to 203 are; a stream of events, a part of a file and what says `no-transform` pass
 * as they are.
 */
export const COMPRESSION = [
  '  compression direction response',
  '  compression algo gzip',
  `  compression type ${TYPES.join(' ')}`,
]
