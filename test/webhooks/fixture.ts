import type { ResourceFixture } from '#test/support/resources'

export default {
  needs: ['app'],
  async make({ call, mark, ids }) {
    const hook = { kind: 'deployment', app_id: ids.app, name: `${mark} hook` }
    return { webhook: (await call('post', '/api/webhooks', hook)).id as string }
  },
} satisfies ResourceFixture
