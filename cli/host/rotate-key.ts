import { checkNode } from '#server/start/open-kernel'
import { rotateKey } from '../rotate-key.ts'
import { defineVerb } from '../verb.ts'

export default defineVerb((verb) => {
  verb
    .description(
      `Makes a new key and seals every stored secret with it; then the old key is gone. While Portreeve is stopped, the command does it all. While it runs, the command prepares the new key, and the work is done by Portreeve after its next restart.

An interrupted rotation goes on where it was, with this command or at the next start. Bearer tokens end with the rotation: people log in again. Sessions of browsers and API keys stay.`,
    )
    .option('--wait', 'while Portreeve runs: wait for the restart and the end, telling how far it is')
    .action(({ wait = false }: { wait?: boolean }) => {
      checkNode()
      return rotateKey(process.env, { wait })
    })
})
