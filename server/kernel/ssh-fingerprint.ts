import { createHash } from 'node:crypto'

/** Fingerprint of a public SSH key, given as SSH sends it, in the form that `ssh-keygen -lf` prints. */
export const sshFingerprint = (key: Uint8Array): string =>
  `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`
