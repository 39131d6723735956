import * as v from 'valibot'
import { pagingEntries, SECRET, several, sorting, Timestamp } from '#server/kernel/schemas'
import {
  DisplayName,
  EmailAddress,
  NewPassword,
  PLATFORM_ROLES,
  PlatformRoleName,
  ProjectRoleName,
  User,
} from './schema.ts'

const Grant = v.strictObject({
  project_id: v.pipe(v.string(), v.maxLength(64), v.description('Project to become a member of.')),
  role: ProjectRoleName,
})
const GrantView = v.object({ project_id: v.string(), role: ProjectRoleName })

/**
 * The one word beside the roles that is understood, so that its refusal can say where ownership is given; it
 * is not offered.
 */
const GivenRole = v.pipe(
  v.picklist([...PLATFORM_ROLES, 'owner'], 'must be one of "admin", "member", "viewer".'),
  v.description(
    'Role on the installation. Nobody can give a role above administrator: `owner`, which is a role in `projects`, is refused with 403.',
  ),
  v.metadata({ enum: PLATFORM_ROLES }),
)

export const NewMember = v.strictObject({
  email: EmailAddress,
  role: v.optional(GivenRole, 'member'),
  projects: v.optional(
    v.pipe(v.array(Grant), v.maxLength(100), v.description('Project roles that the user gets on joining.')),
    [],
  ),
})
export type NewMember = v.InferOutput<typeof NewMember>

/** An invitation that was not accepted yet. */
export const Invitation = v.pipe(
  v.object({
    id: v.string(),
    email: v.string(),
    role: PlatformRoleName,
    projects: v.array(GrantView),
    created_at: Timestamp,
    expires_at: Timestamp,
  }),
  v.title('Invitation'),
)
export type Invitation = v.InferOutput<typeof Invitation>
export const CreatedInvitation = v.pipe(
  v.object({
    ...Invitation.entries,
    sent: v.pipe(v.boolean(), v.description('Whether the invitation went out by mail.')),
    link: v.pipe(
      v.nullable(v.pipe(v.string(), SECRET)),
      v.description(
        'Link to hand over, when no mail could be sent. It is in this answer only. The part behind the `#` is `token`; the link is for a dashboard and answers 404 without one.',
      ),
    ),
    token: v.pipe(
      v.nullable(v.pipe(v.string(), SECRET)),
      v.description(
        'What the invited person sends to `POST /api/auth/invitations/accept`, with a name and a password. Shown where `link` is, in this answer only.',
      ),
    ),
    reason: v.pipe(v.nullable(v.string()), v.description('Why no mail was sent.')),
  }),
  v.title('CreatedInvitation'),
)

export const AcceptedInvitation = v.strictObject({
  token: v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(200),
    v.description('`token` of the invitation: the part of its link behind the `#`.'),
    SECRET,
  ),
  name: DisplayName,
  password: NewPassword,
})
export type AcceptedInvitation = v.InferOutput<typeof AcceptedInvitation>

/**
 * A user of the installation, as administrators see them; open invitations are listed with status `invited`.
 */
export const Member = v.pipe(
  v.object({
    ...User.entries,
    status: v.pipe(
      v.picklist(['active', 'disabled', 'invited']),
      v.description('`invited` until the invitation is accepted.'),
    ),
    two_factor_enabled: v.boolean(),
    projects: v.array(GrantView),
    created_at: Timestamp,
    last_login_at: v.nullable(Timestamp),
  }),
  v.title('Member'),
)
export type Member = v.InferOutput<typeof Member>

export const MemberQuery = v.strictObject({
  ...pagingEntries,
  sort: sorting(['email', 'name', 'role', 'created_at']),
  q: v.optional(v.pipe(v.string(), v.maxLength(200), v.description('Part of the name or e-mail address.'))),
  role: several(PlatformRoleName),
  status: several(
    v.picklist(['active', 'disabled', 'invited']),
    'Only users in this state; `invited` lists open invitations, which are not among the others.',
  ),
})
export type MemberQuery = v.InferOutput<typeof MemberQuery>

export const MemberChange = v.strictObject({
  role: v.optional(PlatformRoleName),
  status: v.optional(
    v.pipe(
      v.picklist(['active', 'disabled']),
      v.description('A disabled user cannot log in; sessions end, keys stop to work, nothing is deleted.'),
    ),
  ),
  end_sessions: v.optional(
    v.pipe(
      v.literal(true),
      v.description(
        'Ends all sessions of the user, with their tokens, cookies and WebSockets, for a device that was lost. API keys stay.',
      ),
    ),
  ),
  reset_two_factor: v.optional(
    v.pipe(
      v.literal(true),
      v.description(
        "Turns the user's two-factor authentication off, for somebody who has lost the device and the recovery codes; their sessions end.",
      ),
    ),
  ),
})
export type MemberChange = v.InferOutput<typeof MemberChange>
