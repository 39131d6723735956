import type { ResourceFixture } from '#test/support/resources'

export default {
  needs: ['app'],
  async make({ call, mark, ids }) {
    await call('put', `/api/apps/${ids.app}/previews/settings`, { enabled: true })
    const preview = { number: 7, branch: `feature/${mark}`, title: `${mark} feature` }
    return { preview: (await call('post', `/api/apps/${ids.app}/previews`, preview)).id as string }
  },
} satisfies ResourceFixture
