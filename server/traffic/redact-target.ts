const MASK = '[redacted]'
/** Names of parameters whose value opens something, or proves who somebody is. */
const SECRET_NAME =
  /token|secret|passw|pwd|^pw$|^pin$|key$|auth|cred|signature|^sig$|session|^sid$|jwt|^code$|^otp$|ticket|^state$|nonce|invite|reset|verif|confirm/i
/** A value made of so many characters that nobody would type it: more likely a secret than a word. */
const SECRET_VALUE = /^[A-Za-z0-9_~+/=.:%-]{32,}$/

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}

/**
 * Takes what may be a secret out of the query of a request. Names stay, so that a log still tells which page
 * was asked for;
 * a value goes when its name or its length says that it may be one. The path stays as it is.
 */
export function redactTarget(target: string): string {
  const start = target.indexOf('?')
  if (start < 0) return target
  return (
    target.slice(0, start + 1) +
    target
      .slice(start + 1)
      .split(/([&;])/)
      .map((part) => {
        const equals = part.indexOf('=')
        if (equals < 0) return SECRET_VALUE.test(part) ? MASK : part
        const [name, value] = [part.slice(0, equals), part.slice(equals + 1)]
        return value !== '' && (SECRET_NAME.test(decoded(name)) || SECRET_VALUE.test(value))
          ? `${name}=${MASK}`
          : part
      })
      .join('')
  )
}
