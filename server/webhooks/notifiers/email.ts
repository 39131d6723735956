import * as v from 'valibot'
import { oneLine, plainText } from '#server/kernel/one-line'
import { defineNotifier } from './notifier.ts'

export const email = defineNotifier({
  name: 'email',
  title: 'E-mail',
  is_mail: true,
  config: v.strictObject({
    to: v.pipe(
      v.string(),
      v.email('must be an e-mail address.'),
      v.maxLength(254),
      v.description(
        'Address that gets the messages, through the mail server of the settings: that of a member of the project, or any that an administrator enters.',
      ),
    ),
  }),
  describe: ({ to }) => to,
  request: ({ title, text, url }, { to }) => ({
    mail: {
      to,
      subject: oneLine(title).slice(0, 200),
      text: [title, text, url].flatMap((part) => (part ? plainText(part) : [])).join('\n\n'),
    },
  }),
})
