import type { ResourceFixture } from '#test/support/resources'

export default {
  needs: ['app'],
  async make({ call, mark, project_id, ids }) {
    const { id } = await call('post', '/api/databases', {
      name: `${mark}-db`,
      engine: 'postgres',
      project_id,
    })
    await call('post', `/api/databases/${id}/links`, { app_id: ids.app, key: 'MATRIX_URL' })
    return { database: id as string }
  },
} satisfies ResourceFixture
