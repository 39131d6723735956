import type { Node } from './queries.ts'

/** What somebody types to add a server. */
export interface ServerForm {
  name: string
  address: string
  port: string
  user: string
  ssh_key_id: string | null
}
export const BLANK: ServerForm = { name: '', address: '', port: '22', user: 'root', ssh_key_id: null }

/** How a server is logged in to, with its key once somebody has approved it. */
export const loginOf = (form: ServerForm, approved: string | undefined) => ({
  port: Number(form.port),
  user: form.user.trim(),
  ssh_key_id: form.ssh_key_id ?? '',
  ...(approved === undefined ? {} : { host_key: approved }),
})

/** The request of a form, with the key of the server once somebody has approved it. */
export const bodyOf = (form: ServerForm, approved: string | undefined) => ({
  address: form.address.trim(),
  ...loginOf(form, approved),
  ...(form.name.trim() === '' ? {} : { name: form.name.trim() }),
})

/** The key that a refusal asks to approve; undefined where it was refused for something else. */
export const shownKey = (fields: Readonly<Record<string, string>>): string | undefined =>
  fields.host_key?.startsWith('SHA256:') ? fields.host_key : undefined

/** The state of a server in a word: one that is emptied is ready, and takes nothing. */
export const stateOf = ({ state, availability }: Pick<Node, 'state' | 'availability'>): string =>
  state === 'ready' && availability === 'drain' ? 'drained' : state

/** What an administrator may do to a server now. */
export function choicesOf({ role, state, availability }: Pick<Node, 'role' | 'state' | 'availability'>) {
  if (role === 'manager') return { drain: false, activate: false, login: false, remove: false }
  const is_member = state === 'ready' || state === 'unreachable'
  return {
    drain: is_member && availability === 'active',
    activate: (is_member && availability === 'drain') || state === 'removing',
    login: is_member,
    remove: state !== 'removing',
  }
}
