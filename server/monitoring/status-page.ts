import { createHash } from 'node:crypto'
import { own } from '#server/kernel/own'
import type { UptimeCheck } from './uptime/schema.ts'

/** What a status page shows of one check. */
export interface ShownCheck extends Pick<UptimeCheck, 'name' | 'status' | 'availability_30d_percent'> {
  days: { at_s: number; availability_percent: number | null }[]
}
export interface StatusPage {
  title: string
  checks: ShownCheck[]
  /** The newest first; `id` tells one from all others of the page. */
  incidents: { id: string; title: string; from: string; until: string | null }[]
  updated_at: string
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
const escape = (text: string) => text.replace(/[&<>"']/g, (character) => own(ENTITIES, character)!)
const percent = (value: number | null) => (value === null ? 'no data' : `${value.toFixed(2)} %`)
const WORDS = { up: 'Operational', down: 'Down', unknown: 'Not checked yet', paused: 'Paused' } as const

/** Levels of a day: colours have words beside them, for whoever does not see colours. */
function levelOf(value: number | null) {
  if (value === null) return 'none'
  if (value >= 99.9) return 'good'
  return value >= 95 ? 'fair' : 'bad'
}

function summaryOf(checks: readonly ShownCheck[]): string {
  if (checks.length === 0) return 'This page does not show anything yet.'
  if (checks.every(({ status }) => status === 'unknown')) return 'Not checked yet.'
  const down = checks.filter(({ status }) => status === 'down').length
  return down === 0 ? 'All systems operate.' : `Down: ${down} of ${checks.length}.`
}

function bars({ days }: ShownCheck): string {
  return days
    .map(({ at_s, availability_percent }) => {
      const day = new Date(at_s * 1000).toISOString().slice(0, 10)
      return `<i class="${levelOf(availability_percent)}" title="${day}: ${percent(availability_percent)}"></i>`
    })
    .join('')
}

const STYLE = `
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6b7f;--line:#d9e0e8;--page:#fbfcfd;--good:#2e8b57;--fair:#c98a1b;--bad:#c0392b;--none:#c7d0da}
@media(prefers-color-scheme:dark){:root{--ink:#e8edf3;--soft:#9aa8b8;--line:#2b3541;--page:#12171d;--none:#3a4653}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:46rem;margin:0 auto;padding:2rem 1rem}h1{font-size:1.5rem;margin:0 0 .25rem}.all{margin:0 0 2rem;color:var(--soft)}
section{border-top:1px solid var(--line);padding:1rem 0}h2{font-size:1rem;margin:0;display:flex;justify-content:space-between;gap:1rem}
h2 span{font-weight:400}.up{color:var(--good)}.down{color:var(--bad)}.unknown,.paused,p,time{color:var(--soft)}
.days{display:flex;gap:2px;height:1.75rem;margin:.5rem 0}.days i{flex:1;border-radius:2px;background:var(--none)}
.days .good{background:var(--good)}.days .fair{background:var(--fair)}.days .bad{background:var(--bad)}p{margin:.25rem 0;font-size:.875rem}`

/**
 * What a page may do: nothing but show itself. Its one style is let through by what it is and not by a number of each
 * answer, so that all who ask may be sent the same bytes.
 */
export const STATUS_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`

/** A page without scripts and without anything loaded from elsewhere. */
export function renderStatusPage({ title, checks, incidents, updated_at }: StatusPage): string {
  const sections = checks.map(
    (
      check,
    ) => `<section><h2>${escape(check.name)} <span class="${check.status}">${WORDS[check.status]}</span></h2>
<div class="days" role="img" aria-label="Availability of each day">${bars(check)}</div>
<p>${percent(check.availability_30d_percent)} in 30 days</p></section>`,
  )
  const past = incidents.map(
    ({ title: what, from, until }) =>
      `<p><time datetime="${from}">${from.slice(0, 16).replace('T', ' ')} UTC</time> ${escape(what)} ${until ? `Over at ${until.slice(0, 16).replace('T', ' ')} UTC.` : 'Not over yet.'}</p>`,
  )
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${escape(title)}: status</title><link rel="alternate" type="application/atom+xml" href="?format=atom">
<style>${STYLE}</style></head>
<body><main><h1>${escape(title)}</h1><p class="all">${summaryOf(checks)} <time datetime="${updated_at}">${updated_at.slice(0, 16).replace('T', ' ')} UTC</time></p>
${sections.join('\n')}
${past.length > 0 ? `<section><h2>Incidents</h2>${past.join('\n')}</section>` : ''}
</main></body></html>
`
}

/** The incidents as an Atom feed of the page at this address. It changes when one begins or ends, and never else. */
export function renderStatusFeed({ title, incidents, updated_at }: StatusPage, address: string): string {
  const changedAt = ({ from, until }: StatusPage['incidents'][number]) => until ?? from
  const entries = incidents.map((incident) => {
    const state = incident.until ? `Over since ${incident.until}.` : 'Not over yet.'
    return `<entry><id>${escape(`${address}#${incident.id}`)}</id><title>${escape(incident.title)}</title>
<link href="${escape(address)}"/><updated>${changedAt(incident)}</updated><content>${state}</content></entry>`
  })
  const updated = incidents.map(changedAt).toSorted().at(-1) ?? updated_at
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><id>${escape(address)}</id><title>${escape(title)}: status</title>
<author><name>${escape(title)}</name></author><link href="${escape(address)}"/>
<link rel="self" href="${escape(`${address}?format=atom`)}"/><updated>${updated}</updated>
${entries.join('\n')}
</feed>
`
}
