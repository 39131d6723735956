import * as v from 'valibot'
import { defineNotifier } from './notifier.ts'

export const email = defineNotifier({
  name: 'email',
  title: 'E-mail',
  config: v.strictObject({
    to: v.pipe(
      v.string(),
      v.email('must be an e-mail address.'),
      v.maxLength(254),
      v.description('Address that gets the messages, through the mail server of the settings.'),
    ),
  }),
  describe: ({ to }) => to,
  request: ({ title, text, url }, { to }) => ({
    mail: { to, subject: title.slice(0, 200), text: [title, text, url].filter(Boolean).join('\n\n') },
  }),
})
