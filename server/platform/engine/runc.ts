/** What an engine says of the programs that it is made of. */
export interface Components {
  Components?: { Name?: string; Version?: string }[] | null
}

/** Version of the program that an engine starts containers with; undefined where it does not say. */
export const runcVersion = ({ Components }: Components): string | undefined =>
  Components?.find(({ Name }) => Name === 'runc')?.Version

/**
 * Whether runc of a version takes what is mounted at `/dev` for the devices of a container, also along a link
 * (CVE-2025-31133; mended in 1.2.8 and 1.3.3). One that does not say its number counts as one that does.
 */
export function takesLinksForDevices(version: string | undefined): boolean {
  const [, major, minor, patch] = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version ?? '') ?? []
  if (major === undefined) return true
  if (Number(major) !== 1) return Number(major) < 1
  return Number(minor) < 2 || (minor === '2' && Number(patch) < 8) || (minor === '3' && Number(patch) < 3)
}
