import { defineEventHandler, setResponseHeader } from 'h3'

const PAGE = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Portreeve</title></head>
<body>
<main>
<h1>Portreeve is running</h1>
<p>This server is driven through its REST API.</p>
<ul>
<li>Log in: <code>POST /api/auth/login</code> with <code>email</code> and <code>password</code></li>
<li>Create an app: <code>POST /api/apps</code> with <code>name</code> and <code>git_url</code></li>
<li>Everything else: <a href="/api/openapi.json">the OpenAPI description</a>, for whoever is logged in</li>
<li>Health: <a href="/readyz">/readyz</a></li>
</ul>
</main>
</body>
</html>
`

/** What a browser shows at the address that the installer prints. */
export default defineEventHandler((event) => {
  setResponseHeader(event, 'Content-Type', 'text/html; charset=utf-8')
  return PAGE
})
