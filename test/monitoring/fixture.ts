import type { ResourceFixture } from '#test/support/resources'

export default {
  async make({ call, project_id, mark }) {
    const check = { project_id, name: `${mark} check`, target: `https://${mark}.example.com/` }
    const rule = { project_id, name: `${mark} rule`, metric: 'cpu_cores', threshold: 1 }
    return {
      uptime_check: (await call('post', '/api/monitoring/uptime', check)).id,
      alert_rule: (await call('post', '/api/monitoring/alerts', rule)).id,
    }
  },
} satisfies ResourceFixture
