/** Pages by the calls of the API that they make; the first that fits counts. */
const PAGES: readonly (readonly [path: RegExp, place: string])[] = [
  [/^apps\/:id\/upload/, 'with “Upload source” of the app'],
  [/^apps\/:id\/previews/, 'under Previews of the app'],
  [/^apps\/:id\/scaling/, 'under Scaling of the app'],
  [/^apps/, 'under Apps'],
  [/^auth\/2fa/, 'under Your profile, Two-factor authentication'],
  [/^auth\/password/, 'under Your profile'],
  [/^backups/, 'under Backups'],
  [/^databases/, 'on the page of the database'],
  [/^git-credentials/, 'under Git credentials'],
  [/^projects/, 'under Projects'],
  [/^registries/, 'under Registries'],
  [/^settings\/smtp/, 'under Settings, Mail'],
  [/^settings/, 'under Settings'],
  [/^ssh-keys/, 'under SSH keys'],
  [/^storage-providers/, 'under Backups, Destinations'],
]

/** A sentence of the server for whoever sits at the dashboard: pages in the place of the calls that it names. */
export const inPages = (text: string): string =>
  text.replace(/(?:with|to|under) (?:POST|PUT|DELETE) \/api\/([\w/:-]*\w)/g, (call, path: string) => {
    const page = PAGES.find(([pattern]) => pattern.test(path))
    return page ? page[1] : call
  })
