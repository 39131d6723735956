/** The edge's own pages. They say nothing about any app, and no cache may keep them. */
function html(title: string, text: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;margin:0;min-height:100vh;display:grid;place-items:center;background:#f6f7f9;color:#1b1f24}main{max-width:32rem;padding:2rem}h1{font-size:1.4rem;margin:0 0 .5rem}p{margin:0;color:#57606a}@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}p{color:#8b949e}}</style>
</head><body><main><h1>${title}</h1><p>${text}</p></main></body></html>
`
}

function page(status: string, title: string, text: string): string {
  const body = html(title, text)
  return [
    `HTTP/1.1 ${status}`,
    'Content-Type: text/html; charset=utf-8',
    'Cache-Control: no-store',
    'X-Content-Type-Options: nosniff',
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'",
    `Content-Length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n')
}

/** The page for each status that the edge answers by itself, as complete HTTP answers. */
export const PAGES: Readonly<Record<number, string>> = {
  400: page('400 Bad Request', 'Bad request', 'The request cannot be read.'),
  403: page('403 Forbidden', 'Not allowed', 'You may not see this from here.'),
  404: page('404 Not Found', 'Nothing here', 'No app answers at this address.'),
  405: page('405 Method Not Allowed', 'Method not allowed', 'This method is not allowed here.'),
  408: page('408 Request Timeout', 'Request timeout', 'The request did not arrive in time.'),
  413: page('413 Content Too Large', 'Too large', 'The request is larger than this app accepts.'),
  500: page('500 Internal Server Error', 'Something went wrong', 'Please try again in a moment.'),
  502: page('502 Bad Gateway', 'The app gave no valid answer', 'Please try again in a moment.'),
  503: page('503 Service Unavailable', 'The app is not running', 'Please try again in a moment.'),
  504: page('504 Gateway Timeout', 'The app did not answer in time', 'Please try again in a moment.'),
}

/** What an app in maintenance answers: the page alone. */
export const MAINTENANCE_PAGE = html('Back soon', 'This app is being worked on. Please try again in a moment.')
