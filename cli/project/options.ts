import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Command } from 'commander'
import { changesOf } from '#server/project-file/diff'
import { PROJECT_FILES, ProjectFileError, readProjectFile } from '#server/project-file/read'
import type { ProjectFile } from '#server/project-file/schema'
import { EXIT } from '../client/exit-codes.ts'
import { readInput } from '../client/prompt.ts'
import { readText } from '../client/read-text.ts'
import { type ClientOptions, openSession } from '../client/session.ts'
import { CommandError } from '../terminal.ts'
import { clashesOf, refusalsOf } from './checks.ts'
import { withFiles } from './files.ts'
import { readLive } from './live.ts'

export interface PlanOptions extends ClientOptions {
  file?: string
  prune?: boolean
  /** What moves in only adds to what is there, which is then none of its plan. */
  only_adds?: boolean
}
export const withFile = (verb: Command): Command =>
  verb
    .option('-f, --file <file>', 'the file, or - for standard input (default: portreeve.yaml of this folder)')
    .option('--prune', 'remove what the file does not name, of the lists that it has')

/** The file that is meant, read and checked. */
export async function fileFor({ file }: PlanOptions): Promise<ProjectFile> {
  const path = file ?? PROJECT_FILES.find((name) => existsSync(name))
  if (path === undefined || (path !== '-' && !existsSync(path)))
    throw new CommandError(
      `There is no file ${path ?? PROJECT_FILES[0]}. Name one with --file, or write one: portreeve export > portreeve.yaml`,
      EXIT.USAGE,
    )
  return readOrRefuse(path === '-' ? await readInput() : readText(path), path)
}

export function readOrRefuse(text: string, path: string): ProjectFile {
  try {
    return readProjectFile(text)
  } catch (error) {
    if (error instanceof ProjectFileError)
      throw new CommandError(`${path} is not right.\n${error.message}`, EXIT.REFUSED)
    throw error
  }
}

/** What a file asks for, compared with what runs. */
export async function planOf(options: PlanOptions, file: ProjectFile) {
  const session = await openSession(options)
  const live = await readLive(session, file.project)
  const path = options.file ?? PROJECT_FILES[0]
  const whole = withFiles(file, live.items, path === '-' ? '.' : dirname(path))
  const changes = changesOf(whole, live.items)
  return {
    session,
    live,
    changes,
    refusals: new Map([
      ...(await refusalsOf(session, live, changes, options.prune === true)),
      ...(options.only_adds ? clashesOf(changes) : []),
    ]),
  }
}
