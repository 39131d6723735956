import type { Apps } from '#server/apps/service'
import { defineModule, sealedById } from '#server/kernel/module'
import type { Base } from '#server/platform/base'
import { readableGitUrl } from '#server/platform/git/parse-url'
import { createSshKeys } from './service.ts'

export default defineModule({
  name: 'ssh_keys',
  tags: [{ name: 'ssh-keys', description: 'SSH keys for private repositories and nodes.' }],
  resources: [{ noun: 'ssh_key', prefix: 'ssh', table: 'ssh_keys', access: 'developer' }],
  sealed: [sealedById('ssh_keys', 'private_key')],
  create(
    { policy, ...base }: Base,
    use: { apps: Pick<Apps, 'sources'>; nodes: { namesUsing(ssh_key_id: string): string[] } },
  ) {
    const own = createSshKeys({
      ...base,
      usesOf: (key) => [
        ...use.nodes.namesUsing(key.id),
        ...use.apps
          .sources(key.project_id)
          .filter(({ project_id, git_url, ssh_key_id }) => {
            if (ssh_key_id) return ssh_key_id === key.id
            const url = git_url ? readableGitUrl(git_url, policy) : undefined
            return url?.protocol === 'ssh' && own.keyFor(project_id, url.host) === key.id
          })
          .map(({ name }) => name),
      ],
    })
    return own
  },
  app: { fetch_secrets: (own, { project_id }) => own.privateKeys(project_id) },
})
