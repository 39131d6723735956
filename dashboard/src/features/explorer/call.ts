import type { Operation } from './document.ts'

/** What somebody has filled in to try an operation. */
export interface Given {
  values: Record<string, string>
  body: string
}

/** The address of a call, with path and query filled in. */
export function addressOf({ path, parameters }: Operation, { values }: Given): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (whole, name: string) =>
    values[name] ? encodeURIComponent(values[name]) : whole,
  )
  const query = parameters
    .filter((one) => one.in === 'query' && values[one.name])
    .map((one) => `${encodeURIComponent(one.name)}=${encodeURIComponent(values[one.name]!)}`)
  return query.length ? `${filled}?${query.join('&')}` : filled
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** The same call for a terminal; the key comes from the environment, never from the page. */
export function curlOf(operation: Operation, given: Given, origin: string): string {
  const parts = [
    `curl -X ${operation.method} ${quoted(origin + addressOf(operation, given))}`,
    `-H "X-API-Key: $PORTREEVE_API_KEY"`,
    ...(operation.body ? ["-H 'Content-Type: application/json'", `-d ${quoted(given.body.trim())}`] : []),
  ]
  return parts.join(' \\\n  ')
}

/** The same call in TypeScript, with a client that is typed from the document. */
export function typescriptOf(operation: Operation, given: Given): string {
  const fill = (where: string) =>
    operation.parameters
      .filter((one) => one.in === where && given.values[one.name])
      .map((one) => `${one.name}: ${JSON.stringify(given.values[one.name])}`)
      .join(', ')
  const [path, query] = [fill('path'), fill('query')]
  const params = [path && `path: { ${path} }`, query && `query: { ${query} }`].filter(Boolean).join(', ')
  const options = [params && `params: { ${params} }`, operation.body && `body: ${given.body.trim()}`].filter(
    Boolean,
  )
  const rest = options.length ? `, { ${options.join(', ')} }` : ''
  return `const { data, error } = await client.${operation.method}('${operation.path}'${rest})`
}
