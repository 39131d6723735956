import type { Share } from '#server/kernel/shares'

/** What is to be placed on a server. */
export interface PlaceRequest {
  app_id: string
  /** The server that the app is pinned to. */
  pin: string | null
  /** Why it has to stay on the server of Portreeve, as a sentence; undefined where it need not. */
  stays: string | undefined
  /** What its instances may use together. */
  needs: Share
  /** Where its live release is; undefined where there is none. */
  current: string | null | undefined
}

/** The servers as deployments see them. */
export interface Servers {
  /** The server for a release; null for that of Portreeve. Throws Fatal when the app is pinned to one that it cannot go to. */
  place(request: PlaceRequest): Promise<string | null>
  /** Whether a release may start on a server now. */
  canRun(node_id: string | null): boolean
  /** Whether a server answers, as far as is known. */
  answers(node_id: string | null): boolean
  nameOf(node_id: string | null): string
}

/** Servers of a module that is made later. */
export const laterServers = (servers: () => Servers): Servers => ({
  place: (request) => servers().place(request),
  canRun: (node_id) => servers().canRun(node_id),
  answers: (node_id) => servers().answers(node_id),
  nameOf: (node_id) => servers().nameOf(node_id),
})
