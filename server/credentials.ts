import { createGitCredentials } from '#server/git-credentials/service'
import type { AuditTrail } from '#server/kernel/audit'
import { createGuardedClient } from '#server/platform/outbound/client'
import type { OutboundPolicy } from '#server/platform/outbound/outbound'
import type { GitCredential } from '#server/platform/git/git'
import { parseGitUrl } from '#server/platform/git/parse-url'
import { checkRegistryLogin } from '#server/registries/login-check'
import { createRegistries, registryHost } from '#server/registries/service'
import type { Kernel } from '#server/services'
import { createSshKeys } from '#server/ssh-keys/service'

/** What a credential may be needed for. */
export interface AppSource {
  name: string
  project_id: string
  git_url: string | null
  image: string | null
}
export interface CredentialParts {
  kernel: Kernel
  audit: AuditTrail
  policy: OutboundPolicy
  /** Apps of one project (undefined: all), for what uses a key. */
  apps(project_id?: string): readonly AppSource[]
}

/** The keys, tokens and logins with which Portreeve reaches what its users own elsewhere. */
export function createCredentials({ kernel: { db, clock, secrets }, audit, policy, apps }: CredentialParts) {
  const client = createGuardedClient(policy)
  const read = (git_url: string) => {
    try {
      return parseGitUrl(git_url, policy)
    } catch {
      // An address that no longer passes the rules gets no credential; the clone says what is wrong with it.
      return undefined
    }
  }
  const ssh_keys = createSshKeys({
    db,
    clock,
    secrets,
    audit,
    usesOf: (key) =>
      apps(key.project_id)
        .filter(({ project_id, git_url }) => {
          const url = git_url ? read(git_url) : undefined
          return url?.protocol === 'ssh' && ssh_keys.keyFor(project_id, url.host) === key.id
        })
        .map(({ name }) => name),
  })
  const git_credentials = createGitCredentials({ db, clock, secrets, audit })
  const registries = createRegistries({
    db,
    clock,
    secrets,
    audit,
    check: (login) => checkRegistryLogin(client, login),
    usesOf: (host) =>
      apps()
        .filter(({ image }) => image !== null && registryHost(image) === host)
        .map(({ name }) => name),
  })
  return {
    ssh_keys,
    git_credentials,
    registries,
    /** What a clone of this address proves itself with: the project's key or token for exactly this host. */
    gitCredentialFor(project_id: string, git_url: string): GitCredential | undefined {
      const url = read(git_url)
      if (!url) return undefined
      return url.protocol === 'ssh'
        ? ssh_keys.credentialFor(project_id, url.host)
        : git_credentials.credentialFor(project_id, url.host, url.port)
    },
    /** Whatever a deployment of the project might print of these, in clear. */
    valuesFor: (project_id: string): string[] => [
      ...git_credentials.tokens(project_id),
      ...ssh_keys.privateKeys(project_id),
      ...registries.passwords(),
    ],
    registryAuthFor: registries.authFor,
    registryAuthsFor: registries.authsFor,
  }
}
export type CredentialServices = ReturnType<typeof createCredentials>
