/** The groups of the API, in the order in which the document shows them. */
export const TAGS: readonly { name: string; description: string }[] = [
  { name: 'auth', description: 'Log in with a password, keep sessions, make API keys.' },
  { name: 'team', description: 'Users of the installation and their roles.' },
  { name: 'apps', description: 'Apps: create, configure, start, stop, read logs, run commands.' },
  { name: 'deployments', description: 'Deployments of apps: trigger, follow, cancel, roll back.' },
  { name: 'domains', description: 'Host names of apps and their verification.' },
  { name: 'certificates', description: 'TLS certificates: issue, upload, renew.' },
  { name: 'databases', description: 'Databases and their links to apps.' },
  { name: 'env', description: 'Variables of apps and projects.' },
  { name: 'storage', description: 'Volumes, mounts and backup destinations.' },
  { name: 'scaling', description: 'Replicas, limits and auto-scaling.' },
  { name: 'monitoring', description: 'Metrics, alerts, uptime checks and health.' },
  { name: 'cron', description: 'Scheduled commands and calls.' },
  { name: 'ssh-keys', description: 'SSH keys for private repositories and nodes.' },
  { name: 'git-credentials', description: 'Tokens for private repositories.' },
  { name: 'registries', description: 'Image registries and their credentials.' },
  { name: 'nodes', description: 'Servers that run apps.' },
  { name: 'services', description: 'Sub-services of compose and template apps.' },
  { name: 'backups', description: 'Backups, restores and their schedules.' },
  { name: 'projects', description: 'Projects, their members and audit logs.' },
  { name: 'redirects', description: 'Redirect rules at the edge.' },
  { name: 'previews', description: 'Preview environments of pull requests.' },
  { name: 'settings', description: 'Settings of the installation.' },
  { name: 'templates', description: 'Ready-made apps.' },
  {
    name: 'webhooks',
    description: 'Inbound git hooks, outbound notifications and their deliveries.',
  },
  {
    name: 'system',
    description: 'The installation itself: version, background jobs, disk, audit log, search.',
  },
  { name: 'openapi', description: 'This description.' },
  { name: 'realtime', description: 'Events and logs as they happen, over one WebSocket.' },
]

/** Paths whose group is not their first segment; the first that matches counts. */
const RULES: readonly [pattern: RegExp, tag: string][] = [
  [/^apps\/:id\/(deploy|deployments|rollback)$/, 'deployments'],
  [/^(apps|projects)\/:id\/env\b/, 'env'],
  [/^apps\/:id\/mounts\b/, 'storage'],
  [/^apps\/:id\/(scaling|services|previews)\b/, '$1'],
  [/^domains\/:id\/ssl-mode$/, 'certificates'],
  [/^(volumes|storage-providers)\b/, 'storage'],
  [/^cron-jobs\b/, 'cron'],
  [/^backup-schedules\b/, 'backups'],
  [/^(audit-logs|search)$/, 'system'],
  [/^openapi\./, 'openapi'],
  [/^ws$/, 'realtime'],
]

/** Group of a path such as `/api/apps/:id/env`. */
export function tagOf(path: string): string {
  const rest = path.replace(/^\/api\//, '')
  for (const [pattern, tag] of RULES) {
    const match = pattern.exec(rest)
    if (match) return tag === '$1' ? match[1]! : tag
  }
  return rest.split('/')[0]!
}
