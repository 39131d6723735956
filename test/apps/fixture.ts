import type { ResourceFixture } from '#test/support/resources'

export default {
  async make({ api, call, project_id, mark }) {
    const git_url = `https://git.example.com/${mark}/app.git`
    api.fakes.git.commit(git_url, 'main', { 'index.html': '<p>hello' })
    const { id } = await call('post', '/api/apps', { name: `${mark}-app`, git_url, project_id })
    const [deployment] = await call('get', `/api/apps/${id}/deployments`)
    return { app: id as string, deployment: deployment.id as string }
  },
} satisfies ResourceFixture
