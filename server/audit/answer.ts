import type { InferInput, InferOutput } from 'valibot'
import { limits, list, paged } from '#server/kernel/schemas'
import { exportLines } from './export.ts'
import { AuditLine, type AuditQuery } from './schema.ts'
import type { Audit } from './service.ts'

export const AuditList = list(AuditLine)
/** Media types of an answer with audit lines, by `format`. */
export const AUDIT_MEDIA_TYPES = ['application/json', 'text/csv', 'application/x-ndjson'] as const

/**
 * A page of the trail, or all of it as a file.
 * @param scope the project whose lines they are, if one, and who reads them.
 */
export function answerAuditLog(
  audit: Audit,
  query: InferOutput<typeof AuditQuery>,
  { project_id, reader }: { project_id?: string; reader: string },
  header: (name: string, value: string) => void,
): InferInput<typeof AuditList> {
  const filter = {
    project_id,
    actor: query.actor,
    action: query.action,
    resource: query.resource,
    from: query.from,
    to: query.to,
  }
  if (query.format === 'json') return paged(audit.page(filter, ...limits(query)), query)
  const { stream, media_type } = exportLines(audit.pieces(filter, query.sort), query.format, reader)
  header('Content-Type', media_type)
  header('Content-Disposition', `attachment; filename="audit-log.${query.format}"`)
  // The pipeline hands a stream of a declared media type on as it is.
  return stream as unknown as InferInput<typeof AuditList>
}
