import * as v from 'valibot'
import { SecretUrl } from './fields.ts'
import { defineNotifier, json, originOf, type Severity } from './notifier.ts'

const COLORS: Record<Severity, string> = {
  info: '#5b6b7f',
  success: '#2e8b57',
  warning: '#c98a1b',
  error: '#c0392b',
}
/** `&`, `<` and `>` are markup in Slack's texts. */
const plain = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

export const slack = defineNotifier({
  name: 'slack',
  title: 'Slack',
  config: v.strictObject({ url: SecretUrl }),
  describe: ({ url }) => originOf(url),
  request: ({ title, text, url, severity }, config) =>
    json(config.url, {
      text: plain(title),
      attachments: [
        {
          color: COLORS[severity],
          fallback: plain(title),
          text: [plain(text), url ? `<${url}|Open>` : ''].filter(Boolean).join('\n'),
        },
      ],
    }),
})
