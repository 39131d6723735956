import { machine } from 'node:os'
import type { Addresses } from '#server/addresses/service'
import type { AppsDomain } from '#server/apps/contract'
import type { DeploymentsDomain } from '#server/deployments/contract'
import { defineModule } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { SshKeys } from '#server/ssh-keys/service'
import { createNodes } from './service.ts'

export default defineModule({
  name: 'nodes',
  tags: [{ name: 'nodes', description: 'Servers that run instances: what they have, and how they are.' }],
  // Whoever joins first makes the cluster, and whoever leaves last ends it.
  pools: { cluster: 1 },
  create: (
    base: Base,
    use: {
      addresses: Pick<Addresses, 'of_server'>
      apps: Pick<AppsDomain, 'pinnedTo' | 'unpin' | 'lost'>
      deployments: Pick<DeploymentsDomain, 'placed' | 'isBeingPlaced' | 'move' | 'nodeOf'>
      ssh_keys: Pick<SshKeys, 'privateKey'>
    },
  ) =>
    createNodes({
      ...base,
      data_directory: base.config.data_directory,
      machine: machine(),
      addresses: () => use.addresses.of_server(),
      ports: {
        privateKey: (id) => use.ssh_keys.privateKey(id),
        placed: () => use.deployments.placed(),
        nodeOf: (release_id, app_id) => use.deployments.nodeOf(release_id, app_id),
        isBeingPlaced: (id) => use.deployments.isBeingPlaced(id),
        move: (app_id, reason) => use.deployments.move(app_id, reason),
        pinned: (id) => use.apps.pinnedTo(id),
        unpin: (actor, id) => use.apps.unpin(actor, id),
        lost: (app_id, error) => use.apps.lost(app_id, error),
      },
    }),
  jobs: (own) => own.jobs,
  channels: (own) => [
    { name: 'nodes/:id', kind: 'events', exists: own.exists, events: (node_id) => ({ node_id }) },
  ],
  schedules: [{ name: 'watch', cron: '* * * * *', task: 'metrics', run: (own) => own.watch() }],
  start: (own) => own.start(),
  stop: (own) => own.stop(),
})
