import { basename } from 'node:path'
import { own } from '#server/kernel/own'
import { dotenvPieces } from '#server/kernel/dotenv'
import { createMoved, environmentOf, type Moved } from './moved.ts'
import { readStack } from './stack.ts'

/** A double-quoted value, in which compose takes back every backslash and `dotenv` leaves them. */
const QUOTED = /^\s*(?:export\s+)?[\w.-]+\s*=\s*"/

/** Variables of the `.env` beside a compose file, as compose reads it. */
function composeEnvironment(env: string | undefined): Record<string, string> {
  return Object.fromEntries(
    dotenvPieces(env ?? '').flatMap((piece) =>
      Object.entries(environmentOf(piece)).map(([key, value]) => [
        key,
        QUOTED.test(piece) ? String(value).replaceAll(/\\([\\"'$])/g, '$1') : String(value),
      ]),
    ),
  )
}

/**
 * A compose file as one app. What of it is taken and what is ignored is said by its reader.
 * @param folder in which it lies: compose calls volumes by its name.
 */
export function fromCompose(text: string, name: string, env: string | undefined, folder: string): Moved {
  const moved = createMoved()
  const variables = composeEnvironment(env)
  const project = own(variables, 'COMPOSE_PROJECT_NAME') ?? basename(folder)
  const asked = new Set(readStack(text, variables, project).asked)
  const desired = Object.fromEntries(Object.entries(variables).filter(([key]) => asked.has(key)))
  moved.addApp(`compose file ${name}`, name, { source: 'compose', compose: text }, desired, project)
  return moved
}
