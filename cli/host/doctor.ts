import { doctor } from '../doctor/doctor.ts'
import { defineVerb } from '../verb.ts'

export default defineVerb((verb) => {
  verb
    .description(
      'Looks at everything that a start and a deployment need, whether the server runs or not, and says in one sentence each what it found and what to do. Changes nothing. Ends with 1 when something has to be mended.',
    )
    .option('--json', 'the findings as JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      process.exitCode = await doctor(process.env, { json })
    })
})
