import type { DeliveryRepository } from './deliveries.ts'
import { findForge } from './forges/forges.ts'
import type { WebhookRow } from './repository.ts'
import type { Webhook } from './schema.ts'

/** The secret part of an address and the key of signatures, where they may be shown. */
export interface Shown {
  token?: string
  secret?: string
}

const HIDDEN = '••••••••'

/** What callers see. Without `shown` it holds no secret. */
export function webhookView(
  row: WebhookRow,
  { base, token, deliveries }: { base: string; token?: string; deliveries: DeliveryRepository },
  shown: Shown = {},
): Webhook {
  const address = (secret_part: string | undefined) =>
    `${base}/api/webhooks/${row.kind === 'git' ? 'git' : 'deploy'}/${secret_part ?? HIDDEN}`
  return {
    id: row.id,
    project_id: row.project_id,
    app_id: row.app_id,
    all_projects: row.all_projects === 1,
    kind: row.kind,
    provider: row.provider as Webhook['provider'],
    name: row.name,
    enabled: row.enabled === 1,
    events: JSON.parse(row.events) as string[],
    url: row.kind === 'notification' ? null : address(shown.token ?? token),
    target: row.target,
    secret: shown.secret ?? null,
    help: row.kind === 'git' ? (findForge(row.provider ?? '')?.help ?? null) : null,
    last_delivery: deliveries.latest(row.id) ?? null,
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}
