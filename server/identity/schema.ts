import { hasControl } from '#server/kernel/one-line'
import * as v from 'valibot'
import { isNetwork } from '#server/kernel/networks'
import { GivenTime, SECRET, Timestamp } from '#server/kernel/schemas'

export const PLATFORM_ROLES = ['admin', 'member', 'viewer'] as const
export const PlatformRoleName = v.pipe(
  v.picklist(PLATFORM_ROLES),
  v.description(
    'Role on the installation: admin may do everything, member what project roles allow, viewer reads only.',
  ),
)
export const ProjectRoleName = v.pipe(
  v.picklist(['owner', 'developer', 'viewer']),
  v.description('Role in the project.'),
)

/** A name for people: one line, nothing invisible around it. */
export const DisplayName = v.pipe(
  v.string(),
  v.trim(),
  v.minLength(1),
  v.maxLength(100),
  v.check((text) => !hasControl(text), 'must be one line of text.'),
)
/** An e-mail address; kept in lower case. Local domains such as `admin@localhost` count. */
export const EmailAddress = v.pipe(
  v.string(),
  v.trim(),
  v.toLowerCase(),
  v.maxLength(254),
  v.regex(
    /^[^\s@"(),:;<>[\\\]\u0000-\u001f\u007f]+@[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/u,
    'must be an e-mail address.',
  ),
  v.description('E-mail address; case does not matter.'),
  v.examples(['ada@example.com']),
)
/** Any text that may be a password; bounded, so that nobody makes the server hash a megabyte. */
export const PasswordText = v.pipe(v.string(), v.minLength(1), v.maxLength(1024), SECRET)
export const NewPassword = v.pipe(
  v.string(),
  v.minLength(10),
  v.maxLength(256),
  v.description('10 to 256 characters; common passwords are refused.'),
  SECRET,
)
/** Code of an authenticator app, or a recovery code. */
export const SecondFactor = v.pipe(
  v.string(),
  v.maxLength(32),
  v.description(
    'Six-digit code of the authenticator app, or a recovery code. Only needed while two-factor authentication is on.',
  ),
  v.examples(['123456']),
)

/** The user as everyone in the project may see them. */
export const User = v.pipe(
  v.object({
    id: v.pipe(v.string(), v.examples(['usr_0123456789abcdefghjk'])),
    email: v.string(),
    name: v.string(),
    role: PlatformRoleName,
  }),
  v.title('User'),
)
export type User = v.InferOutput<typeof User>

export const LoginBody = v.strictObject({
  email: v.pipe(v.string(), v.maxLength(320), v.description('E-mail address of the account.')),
  password: PasswordText,
  totp_code: v.optional(SecondFactor),
})
export const LoginResult = v.pipe(
  v.object({
    token: v.pipe(
      v.string(),
      v.description('Send it as `Authorization: Bearer <token>`. Valid for 30 days.'),
      SECRET,
    ),
    user: User,
  }),
  v.title('LoginResult'),
)
export const RefreshResult = v.pipe(
  v.object({ token: v.pipe(v.string(), SECRET), expires_at: Timestamp }),
  v.title('RefreshResult'),
)
export const CsrfToken = v.pipe(
  v.object({
    csrf_token: v.pipe(
      v.string(),
      v.description('Send it as `X-CSRF-Token` with requests that change something.'),
    ),
  }),
  v.title('CsrfToken'),
)

const Preferences = v.pipe(
  v.record(
    v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_]{0,63}$/)),
    v.union([v.pipe(v.string(), v.maxLength(500)), v.number(), v.boolean(), v.null()]),
  ),
  v.check((values) => Object.keys(values).length <= 50, 'must have at most 50 entries.'),
  v.description('Settings of the dashboard: at most 50 names with plain values.'),
)
/** The authenticated user, with what they may do. */
export const Me = v.pipe(
  v.object({
    ...User.entries,
    two_factor_enabled: v.boolean(),
    recovery_codes_left: v.number(),
    password_change_required: v.pipe(
      v.boolean(),
      v.description(
        'True while the generated first password is in use; nothing but login, me, password and logout works until it is changed.',
      ),
    ),
    preferences: Preferences,
    created_at: Timestamp,
    permissions: v.pipe(
      v.array(v.string()),
      v.description(
        'What the caller may do on the installation, with the narrowing of the API key that was used.',
      ),
      v.examples([['project.create', 'team.manage']]),
    ),
    projects: v.array(v.object({ id: v.string(), name: v.string(), role: ProjectRoleName })),
  }),
  v.title('Me'),
)
export type Me = v.InferOutput<typeof Me>
export const MeChange = v.strictObject({
  name: v.optional(DisplayName),
  email: v.optional(EmailAddress),
  preferences: v.optional(Preferences),
  current_password: v.optional(v.pipe(PasswordText, v.description('Needed to change the e-mail address.'))),
  totp_code: v.optional(SecondFactor),
})
export type MeChange = v.InferOutput<typeof MeChange>

export const PasswordChange = v.strictObject({
  current_password: PasswordText,
  new_password: NewPassword,
})

export const Session = v.pipe(
  v.object({
    id: v.string(),
    current: v.pipe(v.boolean(), v.description('Whether this request belongs to it.')),
    device: v.pipe(
      v.string(),
      v.description('Browser and system, as the client names itself.'),
      v.examples(['Firefox on Linux']),
    ),
    address: v.pipe(v.string(), v.description('Address of the login.')),
    created_at: Timestamp,
    last_used_at: Timestamp,
    expires_at: Timestamp,
  }),
  v.title('Session'),
)
export type Session = v.InferOutput<typeof Session>

const Scope = v.pipe(
  v.picklist(['full', 'read', 'deploy']),
  v.description(
    "`full` leaves the owner's rights, `deploy` allows reading and starting deployments, `read` only reading.",
  ),
)
const Network = v.pipe(
  v.string(),
  v.maxLength(50),
  v.check(isNetwork, 'must be an address or a network such as 203.0.113.0/24.'),
)

export const NewApiKey = v.strictObject({
  name: DisplayName,
  scope: v.optional(Scope, 'full'),
  project_ids: v.optional(
    v.nullable(
      v.pipe(
        v.array(v.pipe(v.string(), v.maxLength(64))),
        v.minLength(1),
        v.maxLength(100),
        v.description('The key works in these projects only.'),
      ),
    ),
  ),
  addresses: v.optional(
    v.nullable(
      v.pipe(
        v.array(Network),
        v.minLength(1),
        v.maxLength(50),
        v.description('The key works from these addresses and networks only.'),
        v.examples([['203.0.113.0/24']]),
      ),
    ),
  ),
  expires_at: v.optional(
    v.nullable(v.pipe(GivenTime, v.description('When the key stops to work; never, when absent.'))),
  ),
  password: v.optional(
    v.pipe(PasswordText, v.description('Own password; needed while two-factor authentication is on.')),
  ),
  totp_code: v.optional(SecondFactor),
})
export type NewApiKey = v.InferOutput<typeof NewApiKey>
export const ApiKey = v.pipe(
  v.object({
    id: v.string(),
    name: v.string(),
    scope: Scope,
    project_ids: v.nullable(v.array(v.string())),
    addresses: v.nullable(v.array(v.string())),
    expires_at: v.nullable(Timestamp),
    created_at: Timestamp,
    last_used_at: v.pipe(v.nullable(Timestamp), v.description('Kept to the minute.')),
    last_used_address: v.nullable(v.string()),
  }),
  v.title('ApiKey'),
)
export type ApiKey = v.InferOutput<typeof ApiKey>
export const CreatedApiKey = v.pipe(
  v.object({
    ...ApiKey.entries,
    key: v.pipe(
      v.string(),
      v.description('The value for `X-API-Key`. It is in this answer only.'),
      v.examples(['ptr_<id>_<secret>']),
      SECRET,
    ),
  }),
  v.title('CreatedApiKey'),
)

export const WsTicket = v.pipe(
  v.object({
    ticket: v.pipe(v.string(), v.description('Opens the WebSocket once: `/api/ws?ticket=…`.'), SECRET),
    expires_at: Timestamp,
  }),
  v.title('WsTicket'),
)
export const LoggedOut = v.pipe(v.object({ logged_out: v.literal(true) }), v.title('LoggedOut'))
export const PasswordChanged = v.pipe(
  v.object({
    changed: v.literal(true),
    sessions_ended: v.pipe(v.number(), v.description('How many other sessions ended with it.')),
  }),
  v.title('PasswordChanged'),
)

export const TwoFactorSetup = v.pipe(
  v.object({
    secret: v.pipe(
      v.string(),
      v.description('The seed in base32, for typing it into an app. It is never shown again.'),
      SECRET,
    ),
    otpauth_url: v.pipe(v.string(), v.description('The same as the QR code holds.'), SECRET),
    qr_svg: v.pipe(v.string(), v.description('QR code as an SVG document.')),
  }),
  v.title('TwoFactorSetup'),
)
export const TwoFactorEnable = v.strictObject({
  totp_code: v.pipe(
    v.string(),
    v.regex(/^\d{3} ?\d{3}$/, 'must be the six digits that the app shows.'),
    v.description('The code that the app shows for the new seed.'),
  ),
})
export const RecoveryCodes = v.pipe(
  v.object({
    recovery_codes: v.pipe(
      v.array(v.pipe(v.string(), SECRET)),
      v.description(
        'Ten codes, each good for one login in place of a TOTP code. They are in this answer only.',
      ),
    ),
  }),
  v.title('RecoveryCodes'),
)
/** Confirmation of a change that a stolen session must not be able to make. */
export const Confirmation = v.strictObject({
  password: v.pipe(PasswordText, v.description('Own password.')),
  totp_code: SecondFactor,
})
export const TwoFactorState = v.pipe(v.object({ two_factor_enabled: v.boolean() }), v.title('TwoFactorState'))
