import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'

const TIMEOUT_MS = 3000
/** That a name or record does not exist is an answer like any other. */
const ANSWERS = new Set(['ENOTFOUND', 'ENODATA'])
const SENTENCES: Record<string, string> = {
  EREFUSED: 'refuses to answer this server.', ESERVFAIL: 'answers with a failure (SERVFAIL).', ENOTIMP: 'does not answer queries for addresses.', EFORMERR: 'does not understand the query.',
}

/**
 * Asks one DNS server for the addresses of a name, to know that it answers; what it answers does not matter.
 * @throws Error with a sentence about the server.
 */
export async function askResolver(address: string, port: number, name: string): Promise<void> {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: 1 })
  resolver.setServers([isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`])
  try {
    await resolver.resolve4(name)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (!ANSWERS.has(code)) throw new Error(SENTENCES[code] ?? `does not answer DNS queries on port ${port}.`, { cause: error })
  } finally {
    resolver.cancel()
  }
}
