/**
 * Looks calm in light and dark and asks nobody for anything: no script, no font, no picture from elsewhere.
 */
const STYLE = `:root{color-scheme:light dark;--back:#f6f7f9;--text:#1b1f24;--soft:#57606a;--line:#d8dee4}
@media(prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;--soft:#9aa4af;--line:#30363d}}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--back);color:var(--text);font:16px/1.6 system-ui,-apple-system,"Segoe UI",sans-serif}
main{box-sizing:border-box;max-width:30rem;padding:2rem}
h1{margin:0 0 .5rem;font-size:1.5rem;line-height:1.3;font-weight:600}
p{margin:0;color:var(--soft)}
small{display:block;margin-top:1.5rem;padding-top:1rem;border-top:1px solid var(--line);color:var(--soft);font-size:.8125rem}`

/** A page of the edge's own. It says nothing about any app, and no cache may keep it. */
function html(title: string, text: string, code?: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex"><title>${title}</title>
<style>${STYLE}</style>
</head><body><main><h1>${title}</h1><p>${text}</p>${code === undefined ? '' : `<small>${code}</small>`}</main></body></html>
`
}

function page(status: string, title: string, text: string, ...headers: string[]): string {
  const body = html(title, text, status)
  return [
    `HTTP/1.1 ${status}`,
    'Content-Type: text/html; charset=utf-8',
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'",
    ...headers,
    `Content-Length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n')
}

const LATER = 'Please try again in a moment.'

/** The page for each status that the edge answers by itself, as complete HTTP answers. */
export const PAGES: Readonly<Record<number, string>> = {
  400: page(
    '400 Bad Request',
    'This request cannot be read',
    'Something on the way changed it, or the address is not one.',
  ),
  401: page('401 Unauthorized', 'Please sign in', 'A name and a password are needed to see this.'),
  403: page('403 Forbidden', 'Not allowed', 'You may not see this from here.'),
  404: page('404 Not Found', 'Nothing here', 'No app answers at this address. Is it spelled right?'),
  405: page('405 Method Not Allowed', 'Method not allowed', 'This method is not allowed here.'),
  408: page('408 Request Timeout', 'That took too long', 'The request did not arrive in time.'),
  413: page('413 Content Too Large', 'Too large', 'The request is larger than this app accepts.'),
  500: page('500 Internal Server Error', 'Something went wrong', LATER),
  501: page('501 Not Implemented', 'Not supported', 'This cannot be done here.'),
  502: page('502 Bad Gateway', 'The app gave no valid answer', LATER),
  503: page('503 Service Unavailable', 'The app is not running', LATER, 'Retry-After: 10'),
  504: page('504 Gateway Timeout', 'The app did not answer in time', LATER),
}

/** What an app in maintenance answers: the page alone. */
export const MAINTENANCE_PAGE = html('Back soon', `This app is being worked on. ${LATER}`)

/** What is shown in place of an app that has never served, by its status. Answered with 503. */
export const WAITING_PAGES: ReadonlyMap<string, string> = new Map([
  [
    'building',
    html(
      'This app is being made',
      'Its first deployment is under way. It will answer here as soon as it is ready: try again in a moment.',
    ),
  ],
  [
    'failed',
    html(
      'This app is not there yet',
      'Its first deployment failed. Whoever runs it finds the reason in the log of the deployment.',
    ),
  ],
])
