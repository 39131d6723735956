import type { Route } from '../ingress.ts'
import { PAGES } from './pages.ts'
import { encodeWord, listName, partEntries } from './map-encoding.ts'

/** Pages of routes in place of the edge's own, piece by piece: an entry must fit into one command. */
export const PAGES_MAP = 'maps/pages.map'
/** The edge's own pages, for routes without one for a status. */
export const DEFAULT_PAGES_MAP = 'maps/default-pages.map'
/** Statuses whose page a route may set. */
export const PAGE_STATUSES = [403, 404, 502, 503, 504]
/** The edge puts an answer together in one buffer of 16 KiB. */
export const MAX_PAGE_BYTES = 15_000
const PIECE_BYTES = 3_600
const PIECES = Math.ceil(MAX_PAGE_BYTES / PIECE_BYTES)
const DEFAULT = 'default'

/** Line breaks become spaces: the edge would show them as `%0A`. */
function piecesOf(page: string): string[] {
  const bytes = Buffer.from(page.replace(/\r?\n|\r/g, ' '), 'utf8')
  // Read byte by byte, so that a piece may end within a character.
  return Array.from({ length: Math.ceil(bytes.length / PIECE_BYTES) }, (_, index) =>
    encodeWord(bytes.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES)),
  )
}
/**
 * The map's entries for a route's pages; a page's pieces are named by their content, so that two pages never
 * mix.
 */
export function pageEntries(
  { error_pages = {} }: Route,
  backend: string,
): { path: string; key: string; value: string }[] {
  return Object.entries(error_pages).flatMap(([status, page]) => {
    const pieces = piecesOf(page)
    return [
      ...partEntries(backend, pieces).map((entry) => ({ path: PAGES_MAP, ...entry })),
      { path: PAGES_MAP, key: `${backend}/${status}`, value: `${backend}/${listName(pieces)}` },
    ]
  })
}

/** The file of the edge's own pages, without their heads. */
export function renderDefaultPages(): string {
  return PAGE_STATUSES.flatMap((status) => {
    const answer = PAGES[status] ?? ''
    return piecesOf(answer.slice(answer.indexOf('\r\n\r\n') + 4)).map(
      (piece, index) => `${DEFAULT}/${status}/${index + 1} ${piece}\n`,
    )
  }).join('')
}

/**
 * What a backend answers when there is no answer of the app: put together when it is needed, so that a page
 * is set without a reload.
 */
export function renderErrorPages(): string[] {
  return PAGE_STATUSES.map((status) => {
    const piece = (map: string) => (index: number) =>
      `%[be_name,concat(/${status}),map(/edge/${PAGES_MAP},${DEFAULT}/${status}),concat(/${index}),map(/edge/${map}),url_dec]`
    const indexes = Array.from({ length: PIECES }, (_, index) => index + 1)
    const body = [...indexes.map(piece(PAGES_MAP)), ...[1, 2].map(piece(DEFAULT_PAGES_MAP))].join('')
    return `  http-error status ${status} content-type "text/html; charset=utf-8" hdr cache-control no-store hdr x-content-type-options nosniff${status === 503 ? ' hdr retry-after 10' : ''} lf-string "${body}"`
  })
}
