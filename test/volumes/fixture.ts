import type { ResourceFixture } from '#test/support/resources'

/** A volume that an app mounts. */
export default {
  needs: ['app'],
  async make({ call, project_id, mark, ids }) {
    const volume = await call('post', '/api/volumes', { name: `${mark}-data`, project_id })
    await call('post', `/api/apps/${ids.app}/mounts`, { path: '/data', volume_id: volume.id })
    return { volume: volume.id }
  },
} satisfies ResourceFixture
