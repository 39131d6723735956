import type { Actor } from '#server/kernel/access'

const ADMINISTRATOR = [
  'team.manage',
  'settings.manage',
  'nodes.manage',
  'registries.manage',
  'storage_providers.manage',
  'audit.read',
  'system.prune',
]

/**
 * What the caller may do on the installation, in words that a client can look for. Derived; the decision
 * itself is `authorize`.
 */
export function permissionsOf(actor: Actor): string[] {
  const may: string[] = ['account.read']
  if (actor.scope === 'full') may.push('account.manage')
  if (actor.role !== 'viewer' && actor.scope === 'full' && !actor.only_projects) may.push('project.create')
  if (actor.role !== 'viewer' && actor.scope !== 'read') may.push('app.deploy')
  if (actor.role === 'admin' && !actor.only_projects && actor.scope === 'full') may.push(...ADMINISTRATOR)
  return may
}
