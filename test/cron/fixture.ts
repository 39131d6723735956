import type { ResourceFixture } from '#test/support/resources'

export default {
  needs: ['app'],
  async make({ call, mark, ids }) {
    const body = { app_id: ids.app, name: `${mark} job`, expression: '@daily', command: mark }
    return { cron_job: (await call('post', '/api/cron-jobs', body)).id }
  },
} satisfies ResourceFixture
