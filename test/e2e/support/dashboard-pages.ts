import { readSources } from '../../meta/sources.ts'

/** Every address pattern of the dashboard, as the features say them. */
export function pagePatterns(): string[] {
  const files = readSources(['dashboard/src/features']).filter(({ path }) => path.endsWith('/routes.ts'))
  return files.flatMap(({ text }) => {
    const patterns: string[] = []
    let parent = ''
    for (const [, tab, path = ''] of text.matchAll(/(app_tabs:)|\bpath: '([^']*)'/g)) {
      if (tab) parent = '/apps/:id'
      else if (path.startsWith('/')) {
        parent = path
        patterns.push(path)
      } else patterns.push(path === '' ? parent : `${parent}/${path}`)
    }
    return [...new Set(patterns)]
  })
}

/**
 * Addresses to walk: patterns with the ids of samples filled in. Throws for a pattern without a sample, so that
 * a new page is never left out.
 * @param samples ids by the first part of the address: `{ apps: 'app_…' }`.
 */
export function addresses(samples: Record<string, string>): string[] {
  const alone = ['/login', '/invitation', '/password']
  return [...new Set(pagePatterns())]
    .filter((pattern) => !alone.includes(pattern))
    .map((pattern) => {
      const [, group = ''] = pattern.split('/')
      if (!pattern.includes(':')) return pattern
      const id = samples[group]
      if (!id) throw new Error(`${pattern} has no sample. Make one in test/e2e/dashboard.test.ts.`)
      return pattern.replace(/:\w+/, id)
    })
}
