import * as v from 'valibot'
import { SecretText } from './fields.ts'
import { defineNotifier, json } from './notifier.ts'

export const telegram = defineNotifier({
  name: 'telegram',
  title: 'Telegram',
  config: v.strictObject({
    bot_token: v.pipe(
      SecretText('Token that BotFather gave.', 100),
      v.regex(/^\d{1,20}:[A-Za-z0-9_-]{10,80}$/, 'must look like 123456:ABC-DEF…'),
    ),
    chat_id: v.pipe(
      v.string(),
      v.regex(/^(-?\d{1,20}|@[A-Za-z0-9_]{3,64})$/, 'must be a number or @channel.'),
      v.description('Chat, group or channel that gets the messages.'),
      v.examples(['-1001234567890', '@deployments']),
    ),
  }),
  describe: ({ chat_id }) => chat_id,
  request: ({ title, text, url }, { bot_token, chat_id }) =>
    json(`https://api.telegram.org/bot${bot_token}/sendMessage`, {
      chat_id,
      text: [title, text, url].filter(Boolean).join('\n').slice(0, 4000),
      link_preview_options: { is_disabled: true },
    }),
})
