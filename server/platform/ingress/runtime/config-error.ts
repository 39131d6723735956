import type { Route } from '../ingress.ts'

/**
 * Says in one sentence what the edge complained about, naming the route whose part of the configuration it
 * stands in.
 * @param files The configuration by the paths that the complaint may name.
 */
export function configError(complaint: string, files: ReadonlyMap<string, string>): string {
  const alerts = complaint.split('\n').filter((line) => line.includes('[ALERT]'))
  const [, path = '', line = '0'] = /\[\/edge\/([^\]:]+):(\d+)\]/.exec(alerts[0] ?? '') ?? []
  const reason = (alerts[0] ?? complaint)
    .replace(/^.*?\[\/edge\/[^\]]+\]\s*:?\s*/, '')
    .replace(/^\[ALERT\]\s*\(\d+\)\s*:\s*(config\s*:\s*)?/, '')
    .trim()
    .slice(0, 300)
  const before = (files.get(path) ?? '').split('\n').slice(0, Number(line))
  const comment = before.slice(0, before.findLastIndex((text) => text.startsWith('backend ')) + 1).at(-2)
  if (!comment?.startsWith('# ')) return reason
  return `the route of ${(JSON.parse(comment.slice(2)) as Route).id}: ${reason}`
}
