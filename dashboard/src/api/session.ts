import { computed, shallowRef } from 'vue'
import { keepDraftsOf } from '@/lib/drafts'
import { tell } from '@/lib/toasts'
import { answerOf, api, forgetCsrf, password_due, session_ended } from './client.ts'
import { ApiFault, sentenceOf } from './fault.ts'
import { followEverything } from './follow.ts'
import type { paths } from './generated/schema.d.ts'
import { connectNow, pauseLive, startLive, stopLive } from './live.ts'
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
    (user) => user && query_client.invalidateQueries(),
    () => undefined,
  )

/** Looks whether the session is still there; a dialog asks to log in again where it is not. */
const look = () =>
  void openSession().then(
    () => session_ended.value && pauseLive(),
    () => undefined,
  )

/** Tabs of one browser have one session: each tells the others that it logged in or out. */
let tabs: BroadcastChannel | undefined
function otherTabs(): BroadcastChannel {
  if (tabs) return tabs
  tabs = new BroadcastChannel('session')
  tabs.onmessage = reread
  return tabs
}

/** Reads who is logged in, and begins to follow what they may see. */
export async function openSession(): Promise<Me | undefined> {
  const before = me.value?.id
  forgetCsrf()
  try {
    const { data } = await answerOf(api.GET('/api/auth/me'))
    // Somebody else, who must not see what was read for the one before, nor act under that one's pages.
    if (before !== undefined && before !== data.id) {
      location.assign('/')
      return undefined
    }
    me.value = data
    keepDraftsOf(data.id)
    session_ended.value = false
    password_due.value = data.password_change_required
    if (!password_due.value) {
      startLive()
      otherTabs()
      const unfollowBefore = unfollow
      unfollow = followEverything(data, reread, look)
      unfollowBefore?.()
    }
    return data
  } catch (error) {
    if (error instanceof ApiFault && error.code === 'UNAUTHORIZED') {
      // Before the first page nothing can be lost: the login stands in its place.
      if (before === undefined) session_ended.value = false
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
  await api.POST('/api/auth/login', { body: given })
  const user = await openSession()
  otherTabs().postMessage('in')
  connectNow()
  await query_client.invalidateQueries()
  return user
}

/** Ends the session; false when it could not be ended, which must not look as if it had. */
export async function logOut(): Promise<boolean> {
  try {
    await api.POST('/api/auth/logout')
  } catch (fault) {
    if (!(fault instanceof ApiFault) || fault.code !== 'UNAUTHORIZED') {
      tell('bad', `You are still logged in: ${sentenceOf(fault)}`)
      return false
    }
  }
  otherTabs().postMessage('out')
  unfollow?.()
  stopLive()
  forgetCsrf()
  keepDraftsOf(undefined)
  query_client.clear()
  location.assign('/login')
  return true
}

/** Keeps a setting of the dashboard with the user. */
export async function savePreference(name: string, value: string | number | boolean | null): Promise<void> {
  const preferences = { ...me.value?.preferences, [name]: value }
  const { data } = await answerOf(api.PUT('/api/auth/me', { body: { preferences } }))
  me.value = data
}
