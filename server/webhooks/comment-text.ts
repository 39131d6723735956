/** What a comment on a pull request says of its preview. */
export interface PreviewReport {
  app_name: string
  status: string
  url: string | null
  commit: string | null
  waiting_commit: string | null
  deployment: { id: string; number: number; status: string } | null
  last_error: string | null
}

const LONGEST_ERROR = 500
const UNFINISHED = new Set(['queued', 'building', 'releasing'])

/** A text in a fence of its own, so that nothing in it is read as Markdown or calls a person. */
const fenced = (text: string): string =>
  `\`\`\`text\n${text.slice(0, LONGEST_ERROR).replaceAll('```', "'''")}\n\`\`\``

function statusOf({ status, deployment, waiting_commit }: PreviewReport): string {
  if (status === 'removing') return 'Removed'
  if (status === 'waiting') return 'Waits for an approval'
  const is_updating = deployment !== null && UNFINISHED.has(deployment.status)
  const settled = status === 'running' ? 'Ready' : status
  const now = is_updating || status === 'building' ? 'Deploying' : settled
  const shown = `${now.charAt(0).toUpperCase()}${now.slice(1)}`
  return waiting_commit ? `${shown}; commit \`${waiting_commit.slice(0, 12)}\` waits for an approval` : shown
}

/**
 * The comment in Markdown that all forges read. It holds nothing that the author of the pull request wrote.
 * @param report undefined once the preview is gone.
 */
export function commentText(
  marker: string,
  report: Partial<PreviewReport> & { app_name: string },
  dashboard: string | null,
): string {
  const full: PreviewReport = {
    status: 'removing',
    url: null,
    commit: null,
    waiting_commit: null,
    deployment: null,
    last_error: null,
    ...report,
  }
  const is_gone = full.status === 'removing'
  const { deployment } = full
  const rows: [string, string | null][] = [
    ['Status', statusOf(full)],
    ['Address', is_gone || full.url === null ? null : full.url],
    ['Commit', full.commit && `\`${full.commit.slice(0, 12)}\``],
    [
      'Deployment',
      deployment &&
        (dashboard
          ? `[#${deployment.number}](${dashboard}/deployments/${deployment.id})`
          : `#${deployment.number}`),
    ],
  ]
  const table = rows.flatMap(([name, value]) => (value ? [`| ${name} | ${value} |`] : []))
  const parts = [
    marker,
    `**Preview of ${full.app_name}**`,
    ['| | |', '|---|---|', ...table].join('\n'),
    ...(full.last_error && !is_gone ? [fenced(full.last_error)] : []),
  ]
  return `${parts.join('\n\n')}\n`
}
