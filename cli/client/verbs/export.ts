import { seemsSecret } from '#server/kernel/secret-names'
import { exportText } from '../../project/export.ts'
import { readLive } from '../../project/live.ts'
import { CommandError, say } from '../../terminal.ts'
import { defineClientVerb } from '../client-verb.ts'
import { EXIT } from '../exit-codes.ts'
import { show } from '../output.ts'
import { type ClientOptions, openSession } from '../session.ts'

async function write(options: ClientOptions & { project?: string; schema?: boolean }): Promise<void> {
  if (options.schema) {
    const { projectFileSchema } = await import('#server/project-file/json-schema')
    return say(JSON.stringify(projectFileSchema(), null, 2))
  }
  const live = await readLive(await openSession(options), options.project)
  if (live.id === undefined) throw new CommandError(`There is no project ${options.project}.`, EXIT.NOT_FOUND)
  const text = exportText(live, seemsSecret)
  show(options, { text }, () => text.trimEnd())
}

export default defineClientVerb((verb) => {
  verb
    .description(
      'Prints portreeve.yaml of what runs. Secrets are named without their values: portreeve apply takes those from --secrets.',
    )
    .option('--project <name>', 'project (default: the default project)')
    .option('--schema', 'print the JSON Schema of the file instead, for editors')
    .action(write)
})
