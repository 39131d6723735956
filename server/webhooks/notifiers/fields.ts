import * as v from 'valibot'
import { SECRET } from '#server/kernel/schemas'

/** An address that messages are sent to. Where it may lead is checked when it is saved and at each request. */
export const HookUrl = v.pipe(
  v.string(),
  v.maxLength(2000),
  v.check((text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), 'must be an address.'),
  v.check((text) => !URL.canParse(text) || !new URL(text).username, 'must not hold a user name.'),
  v.description('https address; http only for hosts that the installation allows.'),
)
/** The same where the address itself is the password, as with chat services. */
export const SecretUrl = v.pipe(
  HookUrl,
  v.description('Address that the service gave; kept as a secret.'),
  SECRET,
)

export const SecretText = (description: string, max = 500) =>
  v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(max),
    v.check((text) => !/[\u0000-\u001f\u007f]/.test(text), 'must be one line of text.'),
    v.description(description),
    SECRET,
  )
