import type { Actor } from '#server/kernel/access'
import { ApiError, conflict } from '#server/kernel/errors'
import { unsuitedBy } from './checks.ts'
import type { NodeContext } from './context.ts'
import { clusterOf } from './join.ts'
import { loginKey, lookAt } from './login.ts'
import type { Members } from './members.ts'
import type { AddedRow } from './repository.ts'
import type { NodeChange } from './schema.ts'

/** A change has its fields below `ssh`; the address stays, so that the port is what may be wrong. */
const nameOf = (field: string): string => `ssh.${field === 'address' ? 'port' : field}`

/**
 * Changes how a member is logged in to, once that has been tried: a key that was replaced, another port, another user,
 * a server that got another key of its own. What is left out stays.
 */
export function createRelogin(context: NodeContext, members: Members) {
  const { db, clock, repository, ports, machine } = context

  async function requireLogin(row: AddedRow, ssh: NonNullable<NodeChange['ssh']>): Promise<void> {
    const private_key = loginKey(ports, ssh.ssh_key_id ?? row.ssh_key_id, nameOf('ssh_key_id'))
    const target = {
      ...{ address: row.address, port: ssh.port ?? row.ssh_port, user: ssh.user ?? row.ssh_user },
      ...{ private_key, host_key: ssh.host_key ?? row.host_key },
    }
    const facts = await lookAt(clusterOf(context), target, nameOf)
    if (!facts.in_cluster)
      throw conflict(
        `What answers there is no member of the cluster. Remove ${row.name} with force, and add the server anew.`,
      )
    const { user } = target
    const against = unsuitedBy(facts, { machine, is_member: true, user }).find(({ path }) => path === 'user')
    if (against)
      throw new ApiError('CONFLICT', against.message, [{ path: nameOf('user'), message: against.message }])
  }

  return async function relogin(
    actor: Actor,
    id: string,
    ssh: NonNullable<NodeChange['ssh']>,
  ): Promise<void> {
    const requireMember = (): AddedRow => {
      const row = context.get(id) as AddedRow
      if (row.state !== 'ready' && row.state !== 'unreachable')
        throw conflict(`The login of ${row.name} cannot be changed while the server is ${row.state}.`)
      return row
    }
    await requireLogin(requireMember(), ssh)
    db.tx(() => {
      const row = requireMember()
      const { port, user, ...keys } = ssh
      const login = {
        ...{ ssh_port: port ?? row.ssh_port, ssh_user: user ?? row.ssh_user },
        ...{ ssh_key_id: row.ssh_key_id, host_key: row.host_key, ...keys },
      }
      const next = { ...row, ...login, updated_at: clock.iso() }
      repository.update(next)
      const { ssh_port, ssh_user, ssh_key_id, host_key } = row
      const before = { ssh_port, ssh_user, ssh_key_id, host_key }
      context.record(actor, 'update', row, { before, after: login })
      context.emit(next, 'node.updated', { labels: JSON.parse(row.labels) as unknown }, actor)
      db.afterCommit(() => members.use())
    })
  }
}
