import type { App, NewApp } from '#server/apps/schema'
import { checkedCompose, keptServices } from '#server/compose/checked'
import type { Actor } from '#server/kernel/access'
import type { Db } from '#server/kernel/db'
import { own } from '#server/kernel/own'
import type { TemplateFolder } from './folder.ts'
import { valuesOf } from './generate.ts'
import type { DeployTemplate } from './schema.ts'

/** What a deployment of a template needs of other domains. */
export interface TemplatePorts {
  /** Makes the app and queues its first deployment. */
  createApp(
    actor: Actor,
    project_id: string,
    body: NewApp,
    services: readonly string[],
    is_template: true,
  ): App
  /** Gives public services names of their own, beside the one of the app. */
  nameServices(app: App, names: readonly string[]): void
  /** Where a service answers; `null` is the one that has the app's own name. */
  address(app_id: string, service: string | null): { hostname: string; url: string } | undefined
  setVariables(actor: Actor, app_id: string, variables: Record<string, string>, secret: boolean): void
}

/** Makes an app of a template: the app, its names and its variables are there together, or nothing is. */
export function createDeploy({ db, ports }: { db: Db; ports: TemplatePorts }) {
  return async (
    actor: Actor,
    project_id: string,
    { slug, template, compose }: TemplateFolder,
    body: DeployTemplate,
  ): Promise<App> => {
    const { mainService } = await import('#server/compose/main-service')
    // A catalogue may have been taken by a release that refused less.
    const plan = await checkedCompose(compose)
    const main = mainService(plan.services)?.name
    const others = plan.services.flatMap(({ name, public_port }) =>
      public_port !== null && name !== main ? [name] : [],
    )
    const names = keptServices(plan)
    return db.tx(() => {
      const app = ports.createApp(
        actor,
        project_id,
        {
          name: body.name ?? slug,
          compose,
          ...(body.project_id ? { project_id: body.project_id } : {}),
        } as NewApp,
        names,
        true,
      )
      ports.nameServices(app, others)
      const at = (service: string) => ports.address(app.id, service === main ? null : service)
      const values = valuesOf(template, body.variables, {
        host: (service) => at(service)?.hostname ?? '',
        url: (service) => at(service)?.url ?? '',
      })
      for (const secret of [true, false]) {
        const group = [...values].filter(([key]) => own(template.variables, key)?.secret === secret)
        if (group.length > 0) ports.setVariables(actor, app.id, Object.fromEntries(group), secret)
      }
      return app
    })
  }
}
