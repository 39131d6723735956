import { own } from '#server/kernel/own'

/**
 * Host keys that large forges publish (ed25519, all as of 2026): a first connection to them is checked, not
 * trusted. Sources:
 * docs.github.com "GitHub's SSH key fingerprints", docs.gitlab.com "SSH host keys fingerprints",
 * support.atlassian.com "Configure SSH".
 */
const PUBLISHED: Record<string, string> = {
  'github.com': 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl',
  'gitlab.com': 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAfuCHKVTjquxvt6CM6tdG4SLp1Btn/nOeHHE5UOzRdf',
  'bitbucket.org': 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIazEu89wgQZ4bqs3d63QSMzYVa0MuJ2e2gKTKqu+UUO',
}

/** The line of known_hosts for a forge whose key is published. */
export const publishedHostKey = (host: string, port: number): string | undefined =>
  port === 22 && own(PUBLISHED, host) !== undefined ? `${host} ${own(PUBLISHED, host)}` : undefined

/** The name under which ssh looks a host up in known_hosts. */
export const hostKeyName = (host: string, port: number): string => (port === 22 ? host : `[${host}]:${port}`)
