import * as v from 'valibot'
import { SecretUrl } from './fields.ts'
import { defineNotifier, json, originOf, type Severity } from './notifier.ts'

const COLORS: Record<Severity, number> = {
  info: 0x5b6b7f,
  success: 0x2e8b57,
  warning: 0xc98a1b,
  error: 0xc0392b,
}

/**
 * Markdown stands as text: a commit message of a stranger could show a link that leads elsewhere than it says. Addresses
 * stay whole, so that they can be followed.
 */
const plain = (text: string) =>
  text.replace(
    /(https?:\/\/[^\s<>()[\]]+)|[\\*_~`|[\]()<>#-]/g,
    (mark, address?: string) => address ?? `\\${mark}`,
  )

export const discord = defineNotifier({
  name: 'discord',
  title: 'Discord',
  config: v.strictObject({ url: SecretUrl }),
  describe: ({ url }) => originOf(url),
  request: ({ title, text, url, severity, created_at }, config) =>
    json(config.url, {
      // A name in a commit message must not call anybody.
      allowed_mentions: { parse: [] },
      embeds: [
        {
          title: plain(title).slice(0, 256),
          description: plain(text).slice(0, 4000),
          color: COLORS[severity],
          timestamp: created_at,
          ...(url ? { url } : {}),
        },
      ],
    }),
})
