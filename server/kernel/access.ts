import { forbidden, notFound } from './errors.ts'

/** Role on the installation. `viewer` reads only, whatever its project roles say. */
export type PlatformRole = 'admin' | 'member' | 'viewer'
/** Role in one project. */
export type ProjectRole = 'owner' | 'developer' | 'viewer'
/** Least right that an endpoint asks for. Source: the `access` column of the endpoint list. */
export type Access = 'public' | 'self' | 'viewer' | 'member' | 'developer' | 'owner' | 'admin'
/** How the caller proved who they are. */
export type AuthMethod = 'bearer' | 'api_key' | 'cookie' | 'ticket' | 'system'

/** What a request carries to prove who sends it. Values are as sent; none of them is ever logged. */
export interface Credentials {
  authorization?: string
  api_key?: string
  /** Value of the cookie `session`; over HTTPS of `__Host-session`. */
  session?: string
  csrf_token?: string
  origin?: string
  fetch_site?: string
  /** Host that the browser addressed, for the comparison with `origin`. */
  host?: string
  /** Whether the method changes something, so that a cookie session needs its CSRF token. */
  mutating: boolean
}

/** Who acts. Built anew for each request, so that a role change holds from the next request on. */
export interface Actor {
  user_id: string
  email: string
  name: string
  role: PlatformRole
  method: AuthMethod
  /** Session or API key that was used. */
  credential_id: string
  /** Project id -> role. */
  projects: ReadonlyMap<string, ProjectRole>
  /** Narrowing of an API key: `full` leaves the owner's rights, `read` and `deploy` cut them. */
  scope: 'full' | 'read' | 'deploy'
  /** API keys may be limited to these projects. */
  only_projects?: ReadonlySet<string>
  /** Peer address and request id, for the audit trail. Empty for the platform itself. */
  address: string
  request_id: string
}

/** The platform acting for itself: recovery, schedules, hooks. */
export const PLATFORM: Actor = {
  user_id: '',
  email: '',
  name: 'Portreeve',
  role: 'admin',
  method: 'system',
  credential_id: '',
  projects: new Map(),
  scope: 'full',
  address: '',
  request_id: '',
}

const RANK: Record<ProjectRole, number> = { viewer: 1, developer: 2, owner: 3 }
const REQUIRED: Record<'viewer' | 'developer' | 'owner', number> = {
  viewer: 1,
  developer: 2,
  owner: 3,
}

/**
 * Whether the caller may act for the whole installation. Nothing else tells: a key that is limited to some
 * projects is no administrator, whoever made it.
 */
export const isAdministrator = (actor: Actor): boolean => actor.role === 'admin' && !actor.only_projects

/** Whether the caller's account may only read, whatever its project roles say. */
export const mayOnlyRead = (actor: Actor): boolean => actor.role === 'viewer'

/** The caller's role in a project; undefined when the project must not exist for them. */
export function projectRole(actor: Actor, project_id: string): ProjectRole | undefined {
  if (actor.only_projects && !actor.only_projects.has(project_id)) return undefined
  if (actor.role === 'admin') return 'owner'
  return actor.projects.get(project_id)
}

/** Projects whose resources the caller may see; undefined means all. */
export function visibleProjects(actor: Actor): readonly string[] | undefined {
  if (isAdministrator(actor)) return undefined
  if (actor.role === 'admin') return [...actor.only_projects!]
  return [...actor.projects.keys()].filter((id) => !actor.only_projects || actor.only_projects.has(id))
}

/**
 * Projects in which the caller is a developer or owner; undefined means all. For lists that viewers must not
 * see.
 */
export function developerProjects(actor: Actor): readonly string[] | undefined {
  return visibleProjects(actor)?.filter((id) => ['developer', 'owner'].includes(projectRole(actor, id) ?? ''))
}

/** What is acted upon: a project (through one of its resources), or the installation. */
export interface Target {
  project_id: string /** For the 404 sentence: `app`. */
  noun: string
}

/**
 * The one decision about who may do what; HTTP, WebSocket, jobs and hooks all ask here.
 * Throws 404 when the caller may not know of the target, 403 when the role or the key's scope is too low.
 * @param action the least right that is needed.
 * @param effect whether something changes, or a deployment is started; read-only keys may only read.
 */
export function authorize(
  actor: Actor,
  action: Access,
  target?: Target,
  effect: 'read' | 'deploy' | 'write' = action === 'viewer' ? 'read' : 'write',
): void {
  if (target && !projectRole(actor, target.project_id)) throw notFound(target.noun)
  if (actor.scope === 'read' && effect !== 'read')
    throw forbidden('This API key may only read. Use one with full rights.')
  if (actor.scope === 'deploy' && effect === 'write')
    throw forbidden('This API key may only read and deploy. Use one with full rights.')
  if (action === 'self' && effect !== 'read' && actor.only_projects)
    throw forbidden('This API key is limited to projects and may not change the account.')
  if (action === 'public' || action === 'self') return
  if (action === 'admin') {
    if (!isAdministrator(actor)) throw forbidden('Only an administrator may do this.')
    return
  }
  if (action === 'viewer' && !target) return
  if (mayOnlyRead(actor) && action !== 'viewer') throw forbidden('Your account may only read.')
  if (action === 'member' || !target) return
  const role = projectRole(actor, target.project_id)!
  if (RANK[role] < REQUIRED[action])
    throw forbidden(`Your role in this project is ${role}; this needs ${action}.`)
}
