import type { ResourceFixture } from '#test/support/resources'

/** A compose app has its services as soon as its file is known. */
export default {
  async make({ call, mark, project_id }) {
    const compose = `services: {${mark}: {image: "nginx:1.29", x-portreeve: {public: 80}}}`
    const app = await call('post', '/api/apps', { name: `${mark}-stack`, project_id, compose })
    const [service] = (await call('get', `/api/apps/${app.id}/services`)) as { id: string }[]
    return { service: service!.id }
  },
} satisfies ResourceFixture
