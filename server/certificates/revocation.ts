import type { Actor } from '#server/kernel/access'
import type { AuditTrail } from '#server/kernel/audit'
import { defineJob, type Verdict } from '#server/kernel/jobs/definition'
import type { Jobs } from '#server/kernel/jobs/jobs'
import type { Accounts } from './accounts.ts'
import type { Lifecycle } from './lifecycle.ts'
import { type CertificateRepository, type CertificateRow, namesIn } from './repository.ts'

const KIND = 'certificate.revoke'
interface RevokePayload {
  certificate_id: string
}

const classify = (error: unknown): Verdict => ({
  kind: 'wait',
  code: 'not_revoked',
  message: error instanceof Error ? error.message : String(error),
  hint: 'The key is erased here. Delete it again to let it be tried once more.',
  log: [],
})

/** Takes a certificate whose key others may know out of use: here at once, at its authority by a job. */
export function createRevocations({
  jobs,
  accounts,
  repository,
  lifecycle,
  audit,
}: {
  jobs: Jobs
  accounts: Accounts
  repository: CertificateRepository
  lifecycle: Lifecycle
  audit: AuditTrail
}) {
  jobs.define(
    defineJob<RevokePayload, object>({
      kind: KIND,
      initial: () => ({}),
      classify,
      steps: [
        {
          name: 'revoke',
          async run({ payload, signal }) {
            const row = repository.find(payload.certificate_id)
            if (row?.chain && row.directory_url)
              await accounts
                .sessionAt(row.directory_url)
                ?.revoke(row.chain.slice(0, row.chain.indexOf('-----END CERTIFICATE-----') + 26), signal)
          },
        },
      ],
      onEnd(job, outcome) {
        const row = repository.find((JSON.parse(job.payload) as RevokePayload).certificate_id)
        if (row && outcome.status === 'succeeded') lifecycle.forget(row)
      },
    }),
  )
  return {
    /** In the transaction of the deletion. */
    begin(actor: Actor, row: CertificateRow): void {
      // One that is revoked already is tried again, without another change of its state.
      if (row.status !== 'revoked') lifecycle.move(row, 'revoke')
      repository.eraseKeys(row.id)
      lifecycle.tell(row, 'revoked', { serial_number: row.serial_number })
      audit.record(actor, {
        action: 'certificate.revoke',
        resource_type: 'certificate',
        resource_id: row.id,
        project_id: row.project_id,
        before: { names: namesIn(row), fingerprint: row.fingerprint },
      })
      jobs.enqueue<RevokePayload>({
        kind: KIND,
        lane: `certificate:${row.id}`,
        subject: row.id,
        project_id: row.project_id,
        payload: { certificate_id: row.id },
      })
    },
  }
}
