import * as v from 'valibot'
import { SECRET, Timestamp } from '#server/kernel/schemas'
import { EmailAddress, NewPassword } from './schema.ts'

/** Body of `POST /api/auth/password/forgot`. */
export const ForgottenPassword = v.strictObject({ email: EmailAddress })
export const ResetAsked = v.pipe(
  v.object({
    asked: v.pipe(v.literal(true), v.description('Always true, whether or not the address is known.')),
  }),
  v.title('ResetAsked'),
)

/** Body of `POST /api/auth/password/reset`. */
export const PasswordResetBody = v.strictObject({
  token: v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(200),
    v.description('The part of the link behind the `#`. It counts once.'),
    SECRET,
  ),
  new_password: NewPassword,
})
export type PasswordResetBody = v.InferOutput<typeof PasswordResetBody>
export const PasswordWasReset = v.pipe(
  v.object({
    email: v.pipe(v.string(), v.description('Address to log in with.'), v.examples(['ada@example.com'])),
  }),
  v.title('PasswordWasReset'),
)

/** Answer of `POST /api/team/members/:id/password-reset`. */
export const PasswordResetLink = v.pipe(
  v.object({
    sent: v.pipe(v.boolean(), v.description('Whether the link went out by mail.')),
    link: v.pipe(
      v.nullable(v.pipe(v.string(), SECRET)),
      v.description('Link to hand over, when no mail could be sent. It is in this answer only.'),
    ),
    token: v.pipe(
      v.nullable(v.pipe(v.string(), SECRET)),
      v.description('The part of the link behind the `#`, shown where the link is.'),
    ),
    expires_at: Timestamp,
    reason: v.pipe(v.nullable(v.string()), v.description('Why no mail was sent.')),
  }),
  v.title('PasswordResetLink'),
)
export type PasswordResetLink = v.InferOutput<typeof PasswordResetLink>
