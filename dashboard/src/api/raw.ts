import { csrfToken } from './client.ts'

/** Longer answers are cut: a page is no place for them. */
const MOST_CHARACTERS = 200_000

const pretty = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** Any call as it is, with the session of this page; refusals are answers, too. */
export async function callRaw(
  method: string,
  address: string,
  body: string | undefined,
): Promise<{ status: number; text: string }> {
  const headers: Record<string, string> = method === 'GET' ? {} : { 'X-CSRF-Token': await csrfToken() }
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  try {
    const answer = await fetch(address, { method, headers, ...(body === undefined ? {} : { body }) })
    return { status: answer.status, text: pretty((await answer.text()).slice(0, MOST_CHARACTERS)) }
  } catch (error) {
    return { status: 0, text: String(error) }
  }
}
