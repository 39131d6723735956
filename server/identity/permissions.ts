import { type Actor, isAdministrator, mayOnlyRead } from '#server/kernel/access'

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
  if (actor.scope === 'full' && !actor.only_projects) may.push('account.manage')
  if (!mayOnlyRead(actor) && actor.scope === 'full' && !actor.only_projects) may.push('project.create')
  if (!mayOnlyRead(actor) && actor.scope !== 'read') may.push('app.deploy')
  if (isAdministrator(actor) && actor.scope === 'full') may.push(...ADMINISTRATOR)
  return may
}
