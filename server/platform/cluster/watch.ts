import type { Link } from './link.ts'
import type { Session } from './session.ts'

const WATCH_MS = 15_000

export interface WatchOptions {
  /** The members there are. */
  links(): readonly Link[]
  furnish(link: Link, session: Session): Promise<void>
  ensureHere(): Promise<void>
  log(message: string): void
}

/** What others may have changed on a server of the cluster is put back, every so often. */
export function createWatch({ links, furnish, ensureHere, log }: WatchOptions) {
  let timer: NodeJS.Timeout | undefined
  let looking: Promise<void> = Promise.resolve()
  let told = ''

  /** One that does not answer is left for later. */
  async function look(): Promise<void> {
    const faults: string[] = []
    const note = (error: unknown) => void faults.push(error instanceof Error ? error.message : String(error))
    for (const link of links()) {
      const session = await link.session().catch(() => undefined)
      if (session)
        await furnish(link, session).catch((error: unknown) => {
          // That a server is away is told by whoever asks it something.
          if (link.isUp()) note(error)
        })
    }
    await ensureHere().catch(note)
    const now = faults.join(' ')
    if (now !== '' && now !== told) log(now)
    told = now
  }
  const lookSoon = (): Promise<void> => (looking = looking.then(look))
  function again(): void {
    clearTimeout(timer)
    if (links().length > 0) timer = setTimeout(() => void lookSoon().finally(again), WATCH_MS).unref()
  }

  return {
    /** Looks at once where there are members, and from then on every so often. */
    lookNow(): void {
      if (links().length > 0) void lookSoon()
      again()
    },
    /** Resolves when no look is under way. */
    settled: (): Promise<void> => looking,
    stop: (): void => clearTimeout(timer),
  }
}
