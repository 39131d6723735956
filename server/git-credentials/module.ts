import type { Apps } from '#server/apps/service'
import { invalid } from '#server/kernel/errors'
import { defineModule, sealedById } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { GitCredential } from '#server/platform/git/git'
import { readableGitUrl } from '#server/platform/git/parse-url'
import type { SshKeys } from '#server/ssh-keys/service'
import { createGitCredentials } from './service.ts'

/** The key or token that an app reads its repository with, instead of what fits the host. */
export interface ChosenAccess {
  ssh_key_id?: string | null | undefined
  git_credential_id?: string | null | undefined
}
interface Needs {
  apps: Pick<Apps, 'sources'>
  ssh_keys: Pick<SshKeys, 'credentialFor' | 'hostOf'>
}

function createGitAccess({ policy, ...base }: Base, use: Needs) {
  const own = createGitCredentials({
    ...base,
    usesOf: ({ id, project_id }) =>
      use.apps
        .sources(project_id)
        .filter(({ git_credential_id }) => git_credential_id === id)
        .map(({ name }) => name),
  })
  const requireKey = (project_id: string, id: string, host: string) => {
    const key_host = use.ssh_keys.hostOf(project_id, id)
    if (key_host === undefined)
      throw invalid('ssh_key_id', 'is no SSH key of this project that has a private half.')
    if (key_host !== null && key_host !== host)
      throw invalid('ssh_key_id', `is a key for ${key_host}; the repository is on ${host}.`)
  }
  const requireToken = (project_id: string, id: string, host: string, port: number) => {
    const token_host = own.hostOf(project_id, id)
    if (token_host === undefined) throw invalid('git_credential_id', 'is no token of this project.')
    if (token_host !== host && token_host !== `${host}:${port}`)
      throw invalid('git_credential_id', `is a token for ${token_host}; the repository is on ${host}.`)
  }
  return {
    ...own,
    /**
     * What a clone of this address proves itself with: what is chosen, else the project's key or token for
     * exactly this host.
     */
    forUrl(project_id: string, git_url: string, chosen: ChosenAccess = {}): GitCredential | undefined {
      const url = readableGitUrl(git_url, policy)
      if (!url) return undefined
      return url.protocol === 'ssh'
        ? use.ssh_keys.credentialFor(project_id, url.host, chosen.ssh_key_id)
        : own.credentialFor(project_id, url.host, url.port, chosen.git_credential_id)
    },
    /** Throws a 422 that names the field when what is chosen is not of the project or not for this address. */
    requireChosen(project_id: string, git_url: string, chosen: ChosenAccess): void {
      const url = readableGitUrl(git_url, policy)
      if (!url) return
      if (url.protocol === 'ssh') {
        if (chosen.git_credential_id)
          throw invalid(
            'git_credential_id',
            'is for https; this repository is read over SSH, with ssh_key_id.',
          )
        if (chosen.ssh_key_id) requireKey(project_id, chosen.ssh_key_id, url.host)
        return
      }
      if (chosen.ssh_key_id)
        throw invalid('ssh_key_id', 'is for SSH; this repository is read over https, with git_credential_id.')
      if (chosen.git_credential_id) requireToken(project_id, chosen.git_credential_id, url.host, url.port)
    },
  }
}
export type GitAccess = ReturnType<typeof createGitAccess>

export default defineModule({
  name: 'git_credentials',
  tags: [{ name: 'git-credentials', description: 'Tokens for private repositories.' }],
  resources: [{ noun: 'git_credential', prefix: 'git', table: 'git_credentials', access: 'developer' }],
  sealed: [sealedById('git_credentials', 'token')],
  create: createGitAccess,
  app: { fetch_secrets: (own, { project_id }) => own.tokens(project_id) },
})
