import { createPace } from '#server/kernel/pace'

/** One family of samples. Names and units follow the naming conventions of Prometheus. */
export interface MetricFamily {
  name: string
  type: 'gauge' | 'counter'
  help: string
  samples: { labels?: Record<string, string>; value: number | null }[]
}

/** Backslash, quote and line break have a meaning in a label. */
const escape = (text: string) => text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
const labelled = (labels: Record<string, string> | undefined) =>
  labels
    ? `{${Object.entries(labels)
        .map(([name, value]) => `${name}="${escape(value)}"`)
        .join(',')}}`
    : ''

/** The text format of Prometheus, version 0.0.4, made in pieces. Families without a sample are left out. */
export async function renderPrometheus(owner: string, families: readonly MetricFamily[]): Promise<string> {
  const pace = createPace(owner)
  const lines: string[] = []
  for (const { name, type, help, samples } of families) {
    const known = samples.filter(({ value }) => value !== null)
    if (known.length === 0) continue
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`)
    for (const { labels, value } of known) {
      lines.push(`${name}${labelled(labels)} ${value}`)
      const rest = pace.rest()
      if (rest) await rest
    }
  }
  return `${lines.join('\n')}\n`
}
