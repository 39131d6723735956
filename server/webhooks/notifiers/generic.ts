import { createHmac } from 'node:crypto'
import * as v from 'valibot'
import { HookUrl, SecretText } from './fields.ts'
import { defineNotifier, originOf } from './notifier.ts'

/** The key of a secret: what follows `whsec_` is base64, any other text is taken as it is. */
const keyOf = (secret: string): Buffer =>
  secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : Buffer.from(secret)

/** Headers and signature by the Standard Webhooks specification, version 1. */
export const generic = defineNotifier({
  name: 'generic',
  title: 'Web address',
  config: v.strictObject({
    url: HookUrl,
    secret: v.optional(
      SecretText('Key of the signature; made when absent and shown once. `whsec_` with base64, or any text.'),
    ),
  }),
  describe: ({ url }) => originOf(url),
  request(notice, { url, secret }, now_s) {
    const { id, type, created_at, title, severity, data } = notice
    const body = JSON.stringify({ id, type, timestamp: created_at, severity, message: title, data })
    const signature = createHmac('sha256', keyOf(secret ?? ''))
      .update(`${id}.${now_s}.${body}`)
      .digest('base64')
    return {
      url,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': String(now_s),
        'webhook-signature': `v1,${signature}`,
      },
      body,
    }
  },
})
