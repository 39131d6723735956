import { ERRORS } from '#server/kernel/errors'
import { FAILURES } from '#server/kernel/failures'

/** `docs/errors.md`: every code of the API, and every word for why work failed. */
export function renderErrors(): string {
  const rows = Object.entries(ERRORS).map(
    ([code, { status, summary }]) => `| ${status} | \`${code}\` | ${summary} |`,
  )
  const failures = Object.entries(FAILURES).map(([word, text]) => `| \`${word}\` | ${text} |`)
  return `# Errors

Made by \`npx node scripts/write-errors.ts\` from \`server/kernel/errors.ts\` and \`failures.ts\`; a test fails when the two differ.

Every error of the API is \`{ "error": { "code", "message" } }\`. Branch on \`code\`: it is stable. \`message\` is for people and may change.
\`VALIDATION_ERROR\` adds \`details\`, a list of \`{ "path", "message" }\`; \`INTERNAL_ERROR\` adds \`request_id\`, which finds the cause in the log of the server.
A request is judged in this order: who calls (401), whether the path and the resource exist for them and what they may do (404, 403), whether query and body can be read (400, 413, 415), whether the fields are right (422).

| Status | Code | When |
|---|---|---|
${rows.join('\n')}

## Why work failed

\`error.code\` of a deployment and of a job is one of these words; \`message\` says it in a sentence, and \`hint\` what to do.

| Code | Why |
|---|---|
${failures.join('\n')}
`
}
