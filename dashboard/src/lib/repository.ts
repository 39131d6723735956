/** A name for an app, made of the last part of a repository's or image's address. */
export function nameOf(address: string): string {
  const last = address.trim().replace(/\/+$/, '').split(/[/:]/).filter(Boolean)
  // An image may end with a tag or a digest.
  const part =
    /[@:][\w.-]+$/.test(address) && last.length > 1 && !address.includes('.git') ? last.at(-2) : last.at(-1)
  return (part ?? '')
    .replace(/\.git$/, '')
    .replace(/@.*$/, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 40)
}
