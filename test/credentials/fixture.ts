import type { ResourceFixture } from '#test/support/resources'

export default {
  async make({ call, project_id, mark }) {
    const key = await call('post', '/api/ssh-keys/generate', { name: `${mark} key`, project_id })
    const token = await call('post', '/api/git-credentials', {
      name: `${mark} token`,
      host: `${mark}.example.com`,
      token: 'the token of a team',
      project_id,
    })
    return { ssh_key: key.id as string, git_credential: token.id as string }
  },
} satisfies ResourceFixture
