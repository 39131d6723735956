import { answerAuditLog, AUDIT_MEDIA_TYPES, AuditList } from '#server/audit/answer'
import { AuditQuery } from '#server/audit/schema'
import { endpoint } from '#server/endpoint'

/** The audit log of the installation, newest first. */
export default endpoint({
  summary: 'Read the audit log of the installation',
  description:
    'Append-only: who changed what, how they had logged in, from where, before and after without secrets; refused logins and requests too. `format=csv` and `format=ndjson` export every line that matches.',
  access: 'admin',
  query: AuditQuery,
  response: AuditList,
  media_types: AUDIT_MEDIA_TYPES,
  handler: ({ query, actor, services, response }) =>
    answerAuditLog(services.audit, query, { reader: actor.user_id }, response.header),
})
