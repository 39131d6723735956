import type { ComposeService } from './model.ts'

/** Names that the service which gets the app's own domain most often has. */
const USUAL_MAIN = ['web', 'app', 'frontend', 'nginx', 'proxy', 'server']

/** The service that gets the app's own name: of several public ones, the one that is called so. */
export function mainService(services: readonly ComposeService[]): ComposeService | undefined {
  const open = services.filter(({ public_port }) => public_port !== null)
  const usual = USUAL_MAIN.map((name) => open.find((service) => service.name === name)).find(Boolean)
  // Services stand after those that they depend on, so that the last one is what people look at.
  return usual ?? open.at(-1)
}
