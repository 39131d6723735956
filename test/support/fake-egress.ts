import type { EgressFilter, GuardState } from '#server/platform/host-rules/egress'

/** A filter that stands, or does not, and lets everything be. */
export function fakeEgress(state: GuardState = { active: true }): EgressFilter {
  return {
    ensure: async () => state,
    renew: async () => state,
    state: () => state,
    openPorts: async () => {},
    admit: async () => {},
    cutOff: async () => {},
    release: async () => {},
  }
}
