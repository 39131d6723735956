import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGit } from '#server/platform/git/cli'
import { createFakeGit } from '#server/platform/git/fake'
import { createConnectProxy } from '#server/platform/outbound/connect-proxy'
import { createOutboundPolicy } from '#server/platform/outbound/policy'
import { startGitServer, type GitServerOptions } from '#test/support/git-server'
import { gitContract, type Forge } from './contract.ts'

gitContract('the fake', async () => {
  const git = createFakeGit()
  const url = (name: string) => `https://git.example.com/${name}.git`
  return {
    git,
    absent_url: url('absent'),
    async close() {},
    create(name, token) {
      git.createRepository(url(name))
      if (token) git.protect(url(name), { kind: 'token', username: 'robot', token })
      return {
        url: url(name),
        commit: (files, message, branch = 'main') => git.commit(url(name), branch, files, message),
      }
    },
  }
})

/** The real adapter against the real `git http-backend`. */
async function realForge(options: GitServerOptions): Promise<Forge> {
  const server = await startGitServer(options)
  const work_directory = mkdtempSync(join(tmpdir(), 'portreeve-git-work-'))
  chmodSync(work_directory, 0o711)
  const policy = createOutboundPolicy({ allowed_private_hosts: [server.host] })
  const proxy = await createConnectProxy(policy)
  return {
    git: createGit({
      policy,
      proxy,
      work_directory,
      ...(server.ca_file ? { ca_file: server.ca_file } : {}),
    }),
    absent_url: `${server.url}/absent.git`,
    create(name, token) {
      const repository = server.repository(
        name,
        token ? { credential: { username: 'robot', password: token } } : {},
      )
      return {
        url: repository.url,
        commit: (files, message, branch = 'main') => repository.commit(files, message, { branch }),
      }
    },
    async close() {
      await proxy.close()
      await server.close()
      rmSync(work_directory, { recursive: true, force: true })
    },
  }
}
gitContract('git over http', () => realForge({}))
gitContract('git from a server with the old protocol', () => realForge({ old_protocol: true }))
