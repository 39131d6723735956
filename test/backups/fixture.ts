import type { ResourceFixture } from '#test/support/resources'

/**
 * A backup that succeeded and a schedule in a project, as rows: what they are of is gone, and so is the
 * archive, as after a disaster.
 */
export default {
  async make({ api: { kernel, services }, project_id, mark }) {
    const destination_id = services.storage_providers.default().id
    const ids = { backup: `bkp_${mark}`, backup_schedule: `sch_${mark}` }
    const at = kernel.clock.iso()
    kernel.db
      .sql(
        `INSERT INTO backups (id, target, target_id, target_name, project_id, status, trigger, destination_id,
           object_key, size_bytes, original_bytes, sha256, encrypted, created_at)
         VALUES (?, 'database', 'db_gone', ?, ?, 'succeeded', 'manual', ?, ?, 1, 1, '', 0, ?)`,
      )
      .run(ids.backup, mark, project_id, destination_id, `database/${mark}`, at)
    kernel.db
      .sql(
        `INSERT INTO backup_schedules (id, name, target, target_id, project_id, cron, timezone, retention,
           encrypted, enabled, created_at, updated_at)
         VALUES (?, ?, 'database', 'db_gone', ?, '@daily', 'UTC', '{}', 0, 1, ?, ?)`,
      )
      .run(ids.backup_schedule, mark, project_id, at, at)
    return ids
  },
} satisfies ResourceFixture
