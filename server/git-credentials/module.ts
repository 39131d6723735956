import { defineModule, sealedById } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import type { GitCredential } from '#server/platform/git/git'
import { readableGitUrl } from '#server/platform/git/parse-url'
import type { SshKeys } from '#server/ssh-keys/service'
import { createGitCredentials } from './service.ts'

export default defineModule({
  name: 'git_credentials',
  tags: [{ name: 'git-credentials', description: 'Tokens for private repositories.' }],
  resources: [{ noun: 'git_credential', table: 'git_credentials', access: 'developer' }],
  sealed: [sealedById('git_credentials', 'token')],
  create({ policy, ...base }: Base, use: { ssh_keys: Pick<SshKeys, 'credentialFor'> }) {
    const own = createGitCredentials(base)
    return {
      ...own,
      /** What a clone of this address proves itself with: the project's key or token for exactly this host. */
      forUrl(project_id: string, git_url: string): GitCredential | undefined {
        const url = readableGitUrl(git_url, policy)
        if (!url) return undefined
        return url.protocol === 'ssh'
          ? use.ssh_keys.credentialFor(project_id, url.host)
          : own.credentialFor(project_id, url.host, url.port)
      },
    }
  },
  app: { secrets: (own, { project_id }) => own.tokens(project_id) },
})
