import { endpoint } from '#server/endpoint'
import { data } from '#server/http/schemas'
import { DomainChange, DomainSettings } from '#server/settings/schema'

/** The names of the dashboard and of apps. */
export default endpoint({
  summary: 'Change the dashboard domain and the base domain',
  description:
    'A field that is left out keeps its value. A new base domain moves the automatic names of all apps; other names stay. One that lies in a domain of another project, or below which the name of an app is taken, is 422 and moves nothing. The plain port of the API answers on under every name, so that a wrong domain locks nobody out; unless `HOST` is set, only to the machine itself once an administrator has come in by the domain.',
  access: 'admin',
  body: DomainChange,
  example: { dashboard_domain: 'portreeve.example.com', base_domain: 'apps.example.com' },
  response: data(DomainSettings),
  async handler({ actor, body, services }) {
    const changed = await services.settings.changeDomain(actor, body)
    await services.ingress.settled()
    return { data: changed }
  },
})
