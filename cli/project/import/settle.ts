import { own } from '#server/kernel/own'
import { stringify } from 'yaml'
import { renderEntry } from '#server/kernel/dotenv'
import { ProjectFileError, readProjectFile } from '#server/project-file/read'
import type { ProjectFile } from '#server/project-file/schema'
import { paint } from '../../client/output.ts'
import type { SecretValues } from '../secrets.ts'
import type { Moved, Note } from './moved.ts'

/** What can be moved: apps that a project file cannot hold are refused, with what is wrong with them. */
export function settle(
  moved: Moved,
  project: string | undefined,
): { text: string; file: ProjectFile; notes: Note[] } {
  let notes = [...moved.notes]
  const apps: Moved['apps'] = {}
  for (const [name, app] of Object.entries(moved.apps)) {
    try {
      readProjectFile(stringify({ apps: { [name]: app }, volumes: moved.volumes }))
      apps[name] = app
    } catch (error) {
      if (!(error instanceof ProjectFileError)) throw error
      notes = notes.filter(({ message }) => message !== `is the app ${name}.`)
      for (const { path, message } of error.faults)
        notes.push({ what: 'refused', at: path.replace(/^apps\./, 'app '), message })
    }
  }
  const text = stringify(
    {
      ...(project === undefined ? {} : { project }),
      ...(Object.keys(moved.databases).length > 0 ? { databases: moved.databases } : {}),
      ...(Object.keys(moved.volumes).length > 0 ? { volumes: moved.volumes } : {}),
      apps,
    },
    { lineWidth: 100, aliasDuplicateObjects: false, compat: 'yaml-1.1' },
  )
  return { text, file: readProjectFile(text), notes }
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
