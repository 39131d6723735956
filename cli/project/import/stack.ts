import { parseDocument } from 'yaml'
import { ComposeError, parseCompose } from '#server/compose/parse'
import { isGenerated } from '#server/services/generated'

/** How data come into a volume: on the server, by the engine, in which its name is its id. */
export const beginsEmpty = (old: string): string =>
  `It begins empty. To fill it, stop the app and copy on the server, with the id of the new volume: docker run --rm -v ${old}:/from:ro -v vol_…:/to debian cp -a /from/. /to/`

/** The name of a project as `docker compose` makes it of a folder. */
const projectOf = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, '')
    .replace(/^[_-]+/, '')

/**
 * What the engine calls a volume of a compose file. A name that is not right would be made at once
 * by whoever copies from it, and nothing be copied.
 */
function engineName(text: string, volume: string, project: string): string {
  const document = parseDocument(text, { logLevel: 'silent' })
  if (!document.hasIn(['volumes', volume]))
    return volume.startsWith('folder_') ? '<path of that folder>' : '<its id, which docker inspect tells>'
  const given = document.getIn(['volumes', volume, 'name'])
  if (typeof given === 'string') return given
  const named = document.get('name')
  return `${projectOf(typeof named === 'string' ? named : project)}_${volume}`
}

/** What is said of one thing in a compose file. */
interface StackNote {
  what: 'changed' | 'refused'
  place: string
  message: string
}
export interface Stack {
  /** Whether it can be run here at all. */
  is_possible: boolean
  /** Variables that it asks for. */
  asked: string[]
  notes: StackNote[]
}

/** What becomes of a compose file, each thing with its place in it. */
export function readStack(text: string, variables: Readonly<Record<string, string>>, project: string): Stack {
  const changed = (place: string, message: string): StackNote => ({ what: 'changed', place, message })
  try {
    const plan = parseCompose(text, { variables })
    const missing = plan.variables.filter(
      ({ name, default: fallback }) =>
        fallback === null && !Object.hasOwn(variables, name) && !isGenerated(name),
    )
    return {
      is_possible: true,
      asked: plan.variables.map(({ name }) => name),
      notes: [
        ...plan.ignored.map(({ path, text: why }) => changed(path, `is left out. ${why}`)),
        ...plan.volumes.map((volume) =>
          changed(`volume ${volume}`, beginsEmpty(engineName(text, volume, project))),
        ),
        ...missing.map(({ name }) =>
          changed(`\${${name}}`, 'has no value here: set it as a variable of the app.'),
        ),
      ],
    }
  } catch (error) {
    if (!(error instanceof ComposeError)) throw error
    return {
      is_possible: false,
      asked: [],
      notes: error.issues.map(({ path, message }) => ({ what: 'refused', place: path, message })),
    }
  }
}
