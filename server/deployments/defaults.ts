import { totalmem } from 'node:os'
import { CORES } from '#server/kernel/cores'
import type { SettingsService } from '#server/settings/service'

const MIB = 1024 * 1024
/** A build may take this share of the host's memory, so that apps keep the rest. */
const BUILD_MEMORY_SHARE = 0.5
const BUILD_TIMEOUT_MS = 1_800_000

/** What one build and one instance may use by default on this host. */
export function deploymentDefaults(server: SettingsService['server']) {
  return {
    build: {
      cpus: Math.max(1, CORES - 0.25),
      memory_bytes: Math.max(512 * MIB, Math.min(Math.floor(totalmem() * BUILD_MEMORY_SHARE), 8192 * MIB)),
      timeout_ms: BUILD_TIMEOUT_MS,
    },
    // Read at each deployment, so that a change of the settings holds from the next one on.
    get instance() {
      const { default_cpus, default_memory_bytes } = server()
      return { cpus: default_cpus ?? CORES, memory_bytes: default_memory_bytes, pids: 512 }
    },
  }
}
