import { answerAuditLog, AUDIT_MEDIA_TYPES, AuditList } from '#server/audit/answer'
import { AuditQuery } from '#server/audit/schema'
import { endpoint } from '#server/endpoint'
import { IdParam } from '#server/http/schemas'

/** The audit log of one project, newest first. */
export default endpoint({
  summary: 'Read the audit log of a project',
  description:
    'Lines about the project and what lives in it. `format=csv` and `format=ndjson` export every line that matches.',
  access: 'owner',
  scope: { noun: 'project' },
  params: IdParam,
  query: AuditQuery,
  response: AuditList,
  media_types: AUDIT_MEDIA_TYPES,
  errors: ['NOT_FOUND'],
  handler: ({ params, query, actor, services, response }) =>
    answerAuditLog(services.audit, query, { project_id: params.id, reader: actor.user_id }, response.header),
})
