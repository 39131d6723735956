import type { ResourceFixture } from '#test/support/resources'

export default {
  needs: ['domain'],
  async make({ call, mark, project_id }) {
    const names = [`${mark}.example.com`]
    return { certificate: (await call('post', '/api/certificates/csr', { names, project_id })).id as string }
  },
} satisfies ResourceFixture
