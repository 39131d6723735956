import * as v from 'valibot'
import { HookUrl, SecretText } from './fields.ts'
import { defineNotifier, json, originOf, type Severity } from './notifier.ts'

const PRIORITIES: Record<Severity, number> = { info: 2, success: 3, warning: 4, error: 5 }

export const ntfy = defineNotifier({
  name: 'ntfy',
  title: 'ntfy',
  config: v.strictObject({
    url: v.optional(HookUrl, 'https://ntfy.sh'),
    topic: v.pipe(
      v.string(),
      v.regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, "_" or "-".'),
      v.description('Topic that messages are published to.'),
    ),
    token: v.optional(SecretText('Access token, for topics that need one.')),
  }),
  describe: ({ url, topic }) => `${originOf(url)}/${topic}`,
  request: ({ title, text, url, severity }, config) =>
    json(
      config.url,
      {
        topic: config.topic,
        title,
        message: text || title,
        priority: PRIORITIES[severity],
        ...(url ? { click: url } : {}),
      },
      config.token ? { authorization: `Bearer ${config.token}` } : {},
    ),
})
