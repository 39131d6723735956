import type { ResourceFixture } from '#test/support/resources'

/** Variables have no noun of their own: they belong to their app or project. */
export default {
  needs: ['app'],
  async make({ call, project_id, mark, ids }) {
    const variable = { key: `${mark}_key`, value: mark }
    await call('post', `/api/apps/${ids.app}/env`, variable)
    await call('put', `/api/projects/${project_id}/env`, { variables: [variable] })
    return {}
  },
} satisfies ResourceFixture
