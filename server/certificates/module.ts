import { defineModule, type SealedColumn, sealedById } from '#server/kernel/module'
import { createCertificatesDomain } from './assembly.ts'

const ofAccount = (column: 'private_key' | 'next_key'): SealedColumn => ({
  table: 'acme_accounts',
  column,
  key: ['directory_url'],
  context: ({ directory_url }) => `acme_accounts/${column}/${directory_url}`,
})

export default defineModule({
  name: 'certificates',
  tags: [
    {
      name: 'certificates',
      description: 'TLS certificates: issue, upload, renew.',
      paths: /^domains\/:id\/ssl-mode$/,
    },
  ],
  resources: [{ noun: 'certificate', prefix: 'crt', table: 'certificates', status_column: 'status' }],
  sealed: [
    sealedById('certificates', 'private_key'),
    sealedById('certificates', 'next_key'),
    ofAccount('private_key'),
    ofAccount('next_key'),
  ],
  // Attempts for certificates that run at once.
  pools: { certificate: 4 },
  create: createCertificatesDomain,
  retention: { acme_attempts: (own) => own.pruneAttempts() },
  schedules: [{ name: 'renew', cron: '*/5 * * * *', task: 'certificates', run: (own) => own.pass() }],
})
