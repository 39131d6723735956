import type { ResourceFixture } from '#test/support/resources'

export default {
  needs: ['domain'],
  async make({ call, mark, ids }) {
    const rule = { domain_id: ids.domain, from: `/${mark}`, to: '/new' }
    return { redirect: (await call('post', '/api/redirects', rule)).id as string }
  },
} satisfies ResourceFixture
