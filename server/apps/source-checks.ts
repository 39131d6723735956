import { invalid } from '#server/kernel/errors'
import { hostAndPort, isOwnImage, parseImage } from '#server/kernel/image-reference'
import { GitError } from '#server/platform/git/git'
import { checkRef, parseGitUrl } from '#server/platform/git/parse-url'
import { OutboundError, type OutboundPolicy } from '#server/platform/outbound/outbound'
import type { SourceChecks } from './configuration.ts'

/** Texts of a request that the installation's policy judges; each is a 422 that names its field. */
export function createSourceChecks(policy: OutboundPolicy): SourceChecks {
  const asInvalid = (field: string, check: () => void) => {
    try {
      check()
    } catch (error) {
      if (error instanceof GitError) throw invalid(field, `${error.message} ${error.hint}`)
      if (error instanceof OutboundError) throw invalid(field, error.message)
      throw error
    }
  }
  return {
    git_url: (text) => asInvalid('git_url', () => void parseGitUrl(text, policy)),
    branch: (text) => asInvalid('branch', () => void checkRef(text)),
    image: (text) => asInvalid('image', () => checkImage(text, policy)),
  }
}

/** A reference as registries understand it, on a host that this server may connect to. */
function checkImage(text: string, policy: OutboundPolicy): void {
  const parsed = parseImage(text)
  if (!parsed)
    throw invalid(
      'image',
      'must be an image reference such as nginx:1.29 or registry.example.com/team/app@sha256:….',
    )
  if (isOwnImage(text))
    throw invalid('image', 'must not begin with portreeve/: these are images of apps of this installation.')
  const { host } = parsed
  // The first part names a registry only when it looks like a host; else it belongs to the path.
  if (host && /[.:]|^localhost$/.test(host)) policy.checkHost(...hostAndPort(host))
}
