import { checkNode } from '#server/start/open-kernel'
import { defineVerb } from '../verb.ts'
import { disableTwoFactor } from '../way-back.ts'

export default defineVerb((verb) => {
  verb
    .description(
      'Turns two-factor authentication of a user off, and ends their sessions. Works while the server runs; the audit log tells of it.',
    )
    .argument('<email>', 'e-mail address of the user')
    .action((email: string) => {
      checkNode()
      return disableTwoFactor(process.env, email)
    })
})
