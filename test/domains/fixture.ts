import type { ResourceFixture } from '#test/support/resources'

export default {
  needs: ['app'],
  async make({ call, mark, ids }) {
    const hostname = `${mark}.example.com`
    const { id } = await call('post', '/api/domains', { app_id: ids.app, hostname })
    return { domain: id as string }
  },
} satisfies ResourceFixture
