import { checkNode } from '#server/start/open-kernel'
import { status } from '../status.ts'
import { defineVerb } from '../verb.ts'

export default defineVerb((verb) => {
  verb
    .description(
      'Says whether the server runs and is ready, and what it runs. Ends with 3 while it is not ready.',
    )
    .action(async () => {
      checkNode()
      process.exitCode = await status(process.env)
    })
})
