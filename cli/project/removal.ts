import { setTimeout as delay } from 'node:timers/promises'
import type { Item } from '#server/project-file/items'
import { ApiFault, dataOf } from '../client/api.ts'
import { all } from '../client/apps.ts'
import { EXIT } from '../client/exit-codes.ts'
import type { Session } from '../client/session.ts'
import { CommandError } from '../terminal.ts'

const LOOK_MS = 500
/** A final backup of a large database may take long. */
const LONGEST_MS = 60 * 60_000

interface State {
  status: string
  last_error?: string | null
}
type Look = (session: Session, id: string, name: string) => Promise<State | undefined>

const path = (id: string) => ({ params: { path: { id } } })
/** What goes in its own time: its row stays until a final backup is whole and everything of it is gone. */
const LOOKS: Partial<Record<Item['kind'], Look>> = {
  app: async ({ api }, id) => (await dataOf(api.GET('/api/apps/{id}', path(id)))).data,
  database: async ({ api }, id) =>
    (
      await dataOf(
        api.GET('/api/databases/{id}', { params: { path: { id }, query: { credentials: 'masked' } } }),
      )
    ).data,
  volume: async ({ api }, id, name) =>
    (
      await all((query) => dataOf(api.GET('/api/volumes', { params: { query: { ...query, q: name } } })))
    ).find((row) => row.id === id),
}

async function stateOf(look: Look, session: Session, id: string, name: string): Promise<State | undefined> {
  try {
    return await look(session, id, name)
  } catch (error) {
    if (error instanceof ApiFault && error.status === 404) return undefined
    throw error
  }
}

/** Waits until something that is being deleted is gone; says why when it stayed. */
export async function awaitRemoval(
  session: Session,
  { kind, name, id }: Item,
  emit: (line: string) => void,
): Promise<void> {
  const look = LOOKS[kind]
  if (!look || id === undefined) return
  emit(`Removing ${kind} ${name}: a final backup first, then what it holds.`)
  const end = Date.now() + LONGEST_MS
  for (;;) {
    const state = await stateOf(look, session, id, name)
    if (!state) return emit(`Removed ${kind} ${name}.`)
    if (state.status !== 'deleting')
      throw new CommandError(
        `${kind} ${name} was not removed: ${state.last_error ?? 'its final backup could not be taken'}. What was done before stays.`,
        EXIT.FAILED,
      )
    if (Date.now() > end) throw new CommandError(`${kind} ${name} is still being removed.`, EXIT.FAILED)
    await delay(LOOK_MS)
  }
}
