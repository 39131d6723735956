const TITLES: Readonly<Record<string, string>> = {
  github: 'GitHub',
  gitlab: 'GitLab',
  gitea: 'Gitea',
  forgejo: 'Forgejo',
  bitbucket: 'Bitbucket',
  slack: 'Slack',
  discord: 'Discord',
  telegram: 'Telegram',
  ntfy: 'ntfy',
  email: 'E-mail',
  generic: 'Web address',
}
/** What people call a forge or a receiver. */
export const titleOf = (provider: string): string => TITLES[provider] ?? provider
const choice = (value: string) => ({ value, label: titleOf(value) })

export const FORGES = ['github', 'gitlab', 'gitea', 'forgejo', 'bitbucket'].map(choice)
export const RECEIVERS = ['slack', 'discord', 'telegram', 'ntfy', 'email', 'generic'].map(choice)

/** What is told: the choice of the server, everything, or what somebody lists. */
export type Telling = 'usual' | 'all' | 'chosen'
export const TELLINGS = [
  { value: 'usual', label: 'Deployments, failures, alerts' },
  { value: 'all', label: 'Everything' },
  { value: 'chosen', label: 'What I list' },
]
export const EVENTS_HINT = 'One per line: deployment.failed, or all of a kind, such as alert.*'

/** Events as the API wants them; undefined leaves the choice to the server. */
export function eventsOf(telling: string | null, text: string): string[] | undefined {
  if (telling === 'usual') return undefined
  return telling === 'all' ? ['*'] : text.split(/[\s,]+/).filter(Boolean)
}
/** What is told by a webhook that is there, for a form. */
export const tellingOf = (events: readonly string[]): { telling: Telling; text: string } => {
  const is_all = events.includes('*')
  return { telling: is_all ? 'all' : 'chosen', text: is_all ? '' : events.join('\n') }
}
