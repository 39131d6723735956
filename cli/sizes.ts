/** Bytes for people. */
export function sizeOf(bytes: number): string {
  const mib = bytes / 1024 ** 2
  return mib < 1024 ? `${Math.max(0, Math.floor(mib))} MiB` : `${(mib / 1024).toFixed(1)} GiB`
}
