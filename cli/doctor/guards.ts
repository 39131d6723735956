import { run } from '#server/kernel/process'
import { PREFIX } from '#server/platform/host-rules/chains'
import { keyOf } from '#server/platform/host-rules/egress'
import { groupOf, unifiedRoot } from '#server/platform/host-rules/engine-process'
import { openFirewall } from '#server/platform/host-rules/firewall'
import { type Check, type Finding, note, ok, reasonOf } from './finding.ts'

const REMEDY =
  'Run Portreeve as root beside its engine, with iptables installed. Until then, keep what must not be reached out of the network of this machine.'
const SOURCES = ['IN-PROJECTS', 'OUT-PROJECTS', 'IN-BUILDS', 'OUT-BUILDS']

async function guarded(consequence: string, look: () => Promise<Finding>): Promise<Finding> {
  try {
    return await look()
  } catch (error) {
    return note(`${consequence}, since ${reasonOf(error)}.`, REMEDY)
  }
}

export const GUARDS: readonly Check[] = [
  {
    name: 'firewall',
    look: ({ config, is_running }) =>
      guarded('Apps and build steps can reach this machine and its network', async () => {
        const { chains } = await openFirewall(config.docker_host, run)
        const families = ([4, 6] as const).filter((family) => chains.has(family))
        for (const family of families) {
          const names = await chains.names(family, PREFIX)
          const missing = SOURCES.filter((one) => !names.includes(`${PREFIX}${one}`))
          if (missing.length === 0) continue
          if (!is_running) return ok('The firewall can be read; the start sets its rules.')
          return note(
            `The firewall lacks the rules ${missing.join(', ')} for IPv${family}.`,
            'The log says why they could not be set: portreeve logs',
          )
        }
        return ok('Rules of the firewall keep apps and build steps from this machine and its network.')
      }),
  },
  {
    name: 'egress',
    look: ({ config, is_running }) =>
      guarded("The engine's own connections cannot be filtered", async () => {
        const { chains, engine } = await openFirewall(config.docker_host, run)
        if (!(await unifiedRoot())) throw new Error('this kernel has no unified control groups')
        if (!is_running) return ok("The engine's process can be seen; the start filters what it connects to.")
        const key = keyOf(config.docker_host.slice('unix://'.length))
        const names = await chains.names(4, `${PREFIX}EGRESS-${key}`)
        const group = await groupOf(engine.pid)
        return names.length > 0 && group === `/portreeve-engine-${key}`
          ? ok('The engine is kept from addresses that are not public.')
          : note(
              'The engine is not kept from addresses that are not public, although Portreeve runs.',
              'The log says why: portreeve logs',
            )
      }),
  },
]
