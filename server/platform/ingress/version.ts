/**
 * The release of HAProxy 3.0 from which on a request over HTTP/3 whose body never comes cannot swallow the next request
 * to the app, somebody else's (CVE-2026-33555).
 */
const FLOOR = 19
/** As the project itself names its releases. Packages of Linux distributions keep a number and mend what is under it. */
const RELEASE = /^3\.0\.(\d+)(-[0-9a-f]{7,})?$/

/** What is known to be wrong with the HAProxy of the edge, and what to do about it; undefined when nothing is. */
export function faultOfEdge(version: string): string | undefined {
  const [, patch] = RELEASE.exec(version) ?? []
  if (patch === undefined || Number(patch) >= FLOOR) return undefined
  return `HAProxy ${version} of the edge lets a request over HTTP/3 change the next one to the same app (CVE-2026-33555); 3.0.${FLOOR} does not.`
}
