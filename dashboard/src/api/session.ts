import { computed, shallowRef } from 'vue'
import { answerOf, api, forgetCsrf, password_due, session_ended } from './client.ts'
import { ApiFault } from './fault.ts'
import { followEverything } from './follow.ts'
import type { paths } from './generated/schema.d.ts'
import { startLive, stopLive } from './live.ts'
import { query_client } from './queries.ts'

export type Me = paths['/api/auth/me']['get']['responses'][200]['content']['application/json']['data']
export type ProjectRole = Me['projects'][number]['role']

/** The user of this page; undefined while nobody is logged in. */
export const me = shallowRef<Me>()
export const is_admin = computed(() => me.value?.role === 'admin')

const RANK: Record<ProjectRole, number> = { viewer: 1, developer: 2, owner: 3 }

/** Whether the user may act in a project; without a project: in any of theirs. */
export function may(role: ProjectRole, project_id?: string): boolean {
  const user = me.value
  if (!user) return false
  if (user.role === 'admin') return true
  if (user.role === 'viewer') return role === 'viewer'
  return user.projects.some(
    (project) => (project_id === undefined || project.id === project_id) && RANK[project.role] >= RANK[role],
  )
}

/** Whether this browser has a session; the server says so, for the cookie is closed to scripts. */
export const has_session = (): boolean => 'session' in document.documentElement.dataset

let unfollow: (() => void) | undefined
/** Reads again what the user may see, once somebody changed it; what was told meanwhile nobody followed. */
const reread = () =>
  void openSession().then(
    () => query_client.invalidateQueries(),
    () => undefined,
  )

/** Reads who is logged in, and begins to follow what they may see. */
export async function openSession(): Promise<Me | undefined> {
  try {
    const { data } = await answerOf(api.GET('/api/auth/me'))
    me.value = data
    session_ended.value = false
    password_due.value = data.password_change_required
    if (!password_due.value) {
      startLive()
      unfollow?.()
      unfollow = followEverything(data, reread)
    }
    return data
  } catch (error) {
    if (error instanceof ApiFault && error.code === 'UNAUTHORIZED') {
      session_ended.value = false
      return undefined
    }
    throw error
  }
}

export interface Login {
  email: string
  password: string
  totp_code?: string
}
/** Logs in with the cookie of this browser; the token is not kept. */
export async function logIn(given: Login): Promise<Me | undefined> {
  const before = me.value?.id
  await api.POST('/api/auth/login', { body: given })
  forgetCsrf()
  const user = await openSession()
  // Somebody else must not see what was read for the one before.
  if (before !== undefined && before !== user?.id) location.assign('/')
  else await query_client.invalidateQueries()
  return user
}

export async function logOut(): Promise<void> {
  await api.POST('/api/auth/logout').catch(() => undefined)
  unfollow?.()
  stopLive()
  forgetCsrf()
  query_client.clear()
  location.assign('/login')
}

/** Keeps a setting of the dashboard with the user. */
export async function savePreference(name: string, value: string | number | boolean | null): Promise<void> {
  const preferences = { ...me.value?.preferences, [name]: value }
  const { data } = await answerOf(api.PUT('/api/auth/me', { body: { preferences } }))
  me.value = data
}
