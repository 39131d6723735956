import { findPortOwner } from '#server/platform/ingress/port-owner'
import { ownUrl, readiness } from '../server-here.ts'
import { startCommand } from '../setup/service.ts'
import { type Check, fault, note, ok } from './finding.ts'

export const SERVER: readonly Check[] = [
  {
    name: 'server',
    async look({ config, is_running }) {
      if (!is_running) {
        const owner = await findPortOwner(config.port)
        return owner === undefined
          ? note(`Portreeve does not run; port ${config.port} is free for it.`, `Start it: ${startCommand()}`)
          : fault(
              `Portreeve does not run, and port ${config.port} is taken by ${owner}.`,
              'End that program, or set PORT to another one.',
            )
      }
      const found = await readiness(config)
      if (!found)
        return fault(
          `Portreeve runs, but does not answer at ${ownUrl(config)}.`,
          'Look at its log: portreeve logs. If it was started with other settings, call this with the same.',
        )
      const wrong = Object.entries(found.checks).find(([, check]) => !check.ok)
      return wrong
        ? fault(
            `Portreeve runs, but is not ready (${wrong[0]}): ${wrong[1].message ?? 'it does not say why.'}`,
            'Mend what it says; it looks again by itself.',
          )
        : ok(`Portreeve runs and is ready at ${ownUrl(config)}.`)
    },
  },
]
