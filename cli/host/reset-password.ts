import { checkNode } from '#server/start/open-kernel'
import { defineVerb } from '../verb.ts'
import { resetPassword } from '../way-back.ts'

export default defineVerb((verb) => {
  verb
    .description(
      'Gives a user a random password, which must be changed at the next login, and ends their sessions. Works while the server runs; the audit log tells of it.',
    )
    .argument('<email>', 'e-mail address of the user')
    .action((email: string) => {
      checkNode()
      return resetPassword(process.env, email)
    })
})
