import type { Certificates } from './service.ts'

/** Certificates as other modules see them. */
export interface CertificatesDomain extends Certificates {
  /** Brings the certificates for these names of the dashboard, old and new, to what the settings say. */
  followDashboard(...names: (string | null)[]): void
}
