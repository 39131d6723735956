import { readSources } from '../../meta/sources.ts'

/** Every address pattern of the dashboard, as the features say them. */
export function pagePatterns(): string[] {
  const files = readSources(['dashboard/src/features']).filter(({ path }) => path.endsWith('/routes.ts'))
  return files.flatMap(({ text }) => {
    const patterns: string[] = []
    let parent = ''
    for (const [, tab, path = ''] of text.matchAll(/(app|project)_tabs:|\bpath: '([^']*)'/g)) {
      if (tab) parent = `/${tab}s/:id`
      else if (path.startsWith('/')) {
        parent = path
        patterns.push(path)
      } else patterns.push(path === '' ? parent : `${parent}/${path}`)
    }
    return [...new Set(patterns)]
  })
}

/** Stands for a thing that nobody made: its page has to say so. */
export const UNKNOWN = 'unknown_0'

/**
 * Addresses to walk: patterns with the ids of samples filled in, so that a new page is never left out. A pattern
 * without a sample is walked as for something that does not exist.
 * @param samples ids by the first part of the address: `{ apps: 'app_…' }`.
 */
export function addresses(samples: Record<string, string>): string[] {
  const alone = ['/login', '/invitation', '/password']
  return [...new Set(pagePatterns())]
    .filter((pattern) => !alone.includes(pattern))
    .map((pattern) => {
      const [, group = ''] = pattern.split('/')
      if (!pattern.includes(':')) return pattern
      return pattern.replace(/:\w+/, samples[group] ?? UNKNOWN)
    })
}
