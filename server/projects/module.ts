import { visibleProjects } from '#server/kernel/access'
import { defineModule } from '#server/kernel/module'
import type { Alerts } from '#server/monitoring/alerts/service'
import type { Base } from '#server/platform/base'
import type { SettingsService } from '#server/settings/service'
import type { People } from './members.ts'
import { createNetworkRemoval } from './network-removal.ts'
import { createProjects } from './service.ts'

interface Needs {
  identity: { people: People }
  settings: Pick<SettingsService, 'server'>
  monitoring: { alerts: Pick<Alerts, 'projectRemoved'> }
}

export default defineModule({
  name: 'projects',
  tags: [{ name: 'projects', description: 'Projects, their members and audit logs.' }],
  resources: [{ noun: 'project', prefix: 'prj', table: 'projects', project_column: 'id', listed: 'search' }],
  create: ({ modules, ...base }: Base, use: Needs) =>
    createProjects({
      ...base,
      people: () => use.identity.people,
      defaultQuotas: () => use.settings.server().default_project_quotas,
      resources: () => modules.sources('overview'),
      share: (project_id) => modules.share(project_id),
      forget: (actor, project_id) => use.monitoring.alerts.projectRemoved(actor, project_id),
      removeNetwork: createNetworkRemoval(base.jobs, base.engine).enqueue,
    }),
  channels: () => [
    { name: 'projects/:id', kind: 'events', noun: 'project', events: (project_id) => ({ project_id }) },
    {
      name: 'projects',
      kind: 'events',
      events: (_id, actor) => ({ in_projects: visibleProjects(actor) ?? 'all' }),
    },
  ],
  // Members are invited into the default project before anything is created there.
  start: (own) => void own.default(),
})
