import { own } from '#server/kernel/own'
import {
  type Access,
  type Actor,
  authorize,
  type PlatformRole,
  type ProjectRole,
} from '#server/kernel/access'
import { ApiError } from '#server/kernel/errors'
import type { AnyEndpoint } from './definition.ts'

/** One row of the matrix: an endpoint, and what each kind of caller gets. */
export interface PermissionRow {
  method: string
  path: string
  access: Access
  summary: string
  answers: Record<string, Verdict>
}
/** `yes`, or the status of the refusal. */
export type Verdict = 'yes' | 401 | 403 | 404

/** The kinds of callers that the matrix tells apart. */
export const PERMISSION_CALLERS: Record<
  string,
  { role: PlatformRole; project?: ProjectRole; scope?: Actor['scope']; limited?: boolean }
> = {
  admin: { role: 'admin' },
  owner: { role: 'member', project: 'owner' },
  developer: { role: 'member', project: 'developer' },
  viewer: { role: 'member', project: 'viewer' },
  outsider: { role: 'member' },
  'platform viewer': { role: 'viewer', project: 'owner' },
  'read key': { role: 'member', project: 'owner', scope: 'read' },
  'deploy key': { role: 'member', project: 'owner', scope: 'deploy' },
  'project key': { role: 'admin', limited: true },
}

const PROJECT = 'prj_of_the_matrix'

function actorOf({ role, project, scope, limited }: (typeof PERMISSION_CALLERS)[string]): Actor {
  return {
    user_id: 'usr',
    email: '',
    name: '',
    role,
    method: 'bearer',
    credential_id: '',
    scope: scope ?? 'full',
    address: '',
    request_id: '',
    projects: new Map(project ? [[PROJECT, project]] : []),
    ...(limited ? { only_projects: new Set([PROJECT]) } : {}),
  }
}

/** What `authorize` says to this caller, the same function that every request asks. */
export function verdictOf(
  definition: AnyEndpoint,
  method: string,
  caller: (typeof PERMISSION_CALLERS)[string],
): Verdict {
  if (definition.access === 'public') return 'yes'
  const inProject = definition.scope !== undefined && definition.scope !== 'installation'
  const noun = typeof definition.scope === 'object' ? definition.scope.noun : 'project'
  try {
    authorize(
      actorOf(caller),
      definition.access,
      inProject ? { project_id: PROJECT, noun } : undefined,
      definition.effect ?? (method === 'GET' ? 'read' : 'write'),
    )
    return 'yes'
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return error.status
    throw error
  }
}

/** The whole matrix, from the definitions of the endpoints. */
export function permissionMatrix(
  endpoints: readonly { method: string; path: string; definition: AnyEndpoint }[],
): PermissionRow[] {
  return endpoints
    .map(({ method, path, definition }) => ({
      method: method.toUpperCase(),
      path,
      access: definition.access,
      summary: definition.summary,
      answers: Object.fromEntries([
        ...Object.entries(PERMISSION_CALLERS).map(([name, caller]) => [
          name,
          verdictOf(definition, method.toUpperCase(), caller),
        ]),
        ['anonymous', definition.access === 'public' ? 'yes' : 401],
      ]) as Record<string, Verdict>,
    }))
    .sort((a, b) => compare(a.path, b.path) || compare(a.method, b.method))
}

/** Byte order, the same on every machine. */
function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/** The matrix as Markdown. */
export function renderPermissions(rows: readonly PermissionRow[]): string {
  const callers = [...Object.keys(PERMISSION_CALLERS), 'anonymous']
  return [
    '# Who may do what',
    '',
    'Written by `npm run permissions` from the definitions of the endpoints; a test compares this page with them and calls each endpoint as each caller.',
    '',
    "- **admin** is an administrator of the installation. **owner**, **developer** and **viewer** are members of the resource's project; **outsider** is a member of another one.",
    '- **platform viewer** may only read, although they are an owner in the project. **read key** and **deploy key** are narrowed API keys of an owner, **project key** is one of an administrator that is limited to the project.',
    '- `404` answers the same bytes as an unknown id. Bearer token, API key and cookie with CSRF token have the same rights; a cookie without the token gets `403` for whatever changes something.',
    "- An API key that is limited to projects is an outsider elsewhere, and nobody's administrator.",
    '',
    `| Endpoint | Least role | ${callers.join(' | ')} |`,
    `|---|---|${callers.map(() => '---|').join('')}`,
    ...rows.map(
      ({ method, path, access, answers }) =>
        `| ${method} ${path} | ${access} | ${callers.map((name) => own(answers, name)).join(' | ')} |`,
    ),
    '',
  ].join('\n')
}
