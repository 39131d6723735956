import { own } from '#server/kernel/own'
import { stringify } from 'yaml'
import { renderEntry } from '#server/kernel/dotenv'
import { type FileFault, ProjectFileError, readProjectFile } from '#server/project-file/read'
import type { ProjectFile } from '#server/project-file/schema'
import { paint } from '../../client/output.ts'
import { readOrRefuse } from '../options.ts'
import type { SecretValues } from '../secrets.ts'
import type { Moved, Note } from './moved.ts'

/** What a dotenv file can say of what is moved: secrets that it cannot are left out, and told. */
export function writable(moved: Moved): Moved {
  const notes = [...moved.notes]
  const [apps, secrets] = [{ ...moved.apps }, { ...moved.secrets }]
  for (const [app, values] of Object.entries(moved.secrets))
    for (const [key, value] of Object.entries(values)) {
      if (!renderEntry(key, value).startsWith('#')) continue
      const { [key]: _value, ...others } = own(secrets, app)!
      const holder = own(apps, app)
      secrets[app] = others
      if (holder) {
        const { [key]: _variable, ...variables } = holder.variables as Record<string, unknown>
        apps[app] = { ...holder, variables }
      }
      notes.push({
        what: 'refused',
        at: `${app} ${key}`,
        message: `holds characters that no dotenv file can: portreeve env set --app ${app} --secret ${key}=- takes it from standard input.`,
      })
    }
  return { ...moved, apps, secrets, notes }
}

/** What of a list can stand in a project file; of the rest it is told what is wrong with it. */
function held(
  all: Moved['apps'],
  list: 'databases' | 'volumes',
  tell: (faults: FileFault[], name: string) => void,
) {
  return Object.fromEntries(
    Object.entries(all).filter(([name, one]) => {
      try {
        readProjectFile(stringify({ [list]: { [name]: one } }))
        return true
      } catch (error) {
        if (!(error instanceof ProjectFileError)) throw error
        tell([...error.faults], name)
        return false
      }
    }),
  )
}

/** What can be moved: what a project file cannot hold is refused, with what is wrong with it. */
export function settle(
  moved: Moved,
  project: string | undefined,
): { text: string; file: ProjectFile; notes: Note[] } {
  let notes = [...moved.notes]
  const refuse = (faults: readonly FileFault[], kind: string, taken: RegExp) => {
    notes = notes.filter(({ message }) => !taken.test(message))
    for (const { path, message } of faults)
      notes.push({ what: 'refused', at: path.replace(new RegExp(`^${kind}s\\.`), `${kind} `), message })
  }
  const databases = held(moved.databases, 'databases', (faults, name) =>
    refuse(faults, 'database', new RegExp(`^is the database ${name},`)),
  )
  const volumes = held(moved.volumes, 'volumes', (faults, name) =>
    refuse(faults, 'volume', new RegExp(`^is the volume ${name} at `)),
  )
  const apps: Moved['apps'] = {}
  for (const [name, app] of Object.entries(moved.apps)) {
    try {
      readProjectFile(stringify({ apps: { [name]: app }, volumes }))
      apps[name] = app
    } catch (error) {
      if (!(error instanceof ProjectFileError)) throw error
      refuse(error.faults, 'app', new RegExp(`^is the app ${name}\\.$`))
    }
  }
  const text = stringify(
    {
      ...(project === undefined ? {} : { project }),
      ...(Object.keys(databases).length > 0 ? { databases } : {}),
      ...(Object.keys(volumes).length > 0 ? { volumes } : {}),
      apps,
    },
    { lineWidth: 100, aliasDuplicateObjects: false, compat: 'yaml-1.1' },
  )
  return { text, file: readOrRefuse(text, 'What is moved'), notes }
}

export const secretsOf = ({ secrets }: Moved): SecretValues => ({
  of: ({ of, name }) => (of === undefined ? undefined : own(own(secrets, of), name)),
})
/** The secrets as `apply --secrets` reads them. */
export const secretsText = ({ secrets }: Moved): string =>
  Object.entries(secrets)
    .map(
      ([app, values]) =>
        `[${app}]\n${Object.entries(values)
          .map(([key, value]) => `${renderEntry(key, value)}\n`)
          .join('')}`,
    )
    .join('\n')

const SIGNS = { taken: ['green', '✓'], changed: ['yellow', '~'], refused: ['red', '✗'] } as const
/** What is taken, changed and refused, as a person reads it. */
export const notesText = (notes: readonly Note[]): string =>
  (['taken', 'changed', 'refused'] as const)
    .flatMap((what) => notes.filter((note) => note.what === what))
    .map(({ what, at, message }) => `${paint(SIGNS[what][0], SIGNS[what][1])} ${at} ${message}`)
    .join('\n')
