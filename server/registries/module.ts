import type { Apps } from '#server/apps/service'
import { registryHost } from '#server/kernel/image-reference'
import { defineModule, sealedById } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { checkRegistryLogin } from './login-check.ts'
import { createRegistries } from './service.ts'

export default defineModule({
  name: 'registries',
  tags: [{ name: 'registries', description: 'Image registries and their credentials.' }],
  sealed: [sealedById('registries', 'password')],
  create({ client, ...base }: Base, use: { apps: Pick<Apps, 'sources'> }) {
    return createRegistries({
      ...base,
      check: (login) => checkRegistryLogin(client, login),
      usesOf: (host) =>
        use.apps
          .sources()
          .filter(({ image }) => image !== null && registryHost(image) === host)
          .map(({ name }) => name),
    })
  },
  app: { fetch_secrets: (own) => own.passwords() },
})
