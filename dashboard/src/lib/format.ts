const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'narrow' })
const exact = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' })
const number = new Intl.NumberFormat('en')

/** `3 min ago`, `in 2 h`; the date once that says more. */
export function relativeTime(iso: string, now: number): string {
  const distance = Date.parse(iso) - now
  const size = Math.abs(distance)
  if (size < 10_000) return 'just now'
  if (size < MINUTE) return relative.format(Math.round(distance / 1000), 'second')
  if (size < HOUR) return relative.format(Math.round(distance / MINUTE), 'minute')
  if (size < DAY) return relative.format(Math.round(distance / HOUR), 'hour')
  if (size < 45 * DAY) return relative.format(Math.round(distance / DAY), 'day')
  return day.format(new Date(iso))
}

/** The moment in the reader's own time zone. */
export const exactTime = (iso: string): string => exact.format(new Date(iso))

/** A moment as a field of times has it, to the second, on the reader's own clock. */
export const timeField = (iso: string): string => {
  const at = new Date(iso)
  return new Date(at.getTime() - at.getTimezoneOffset() * MINUTE).toISOString().slice(0, 19)
}
/** What was typed into a field of times, in the words of the API; undefined while it is no time. */
export const momentOf = (text: string | undefined): string | undefined => {
  const time = Date.parse(text ?? '')
  return Number.isNaN(time) ? undefined : new Date(time).toISOString()
}

/** The same of a moment that the address holds; empty while it holds none. */
export const fieldOfMoment = (text: string | undefined): string => {
  const moment = momentOf(text)
  return moment ? timeField(moment) : ''
}

/** `14:03:07.512`, for lines of a log. */
export const clockTime = (iso: string): string => {
  const at = new Date(iso)
  const two = (value: number) => String(value).padStart(2, '0')
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, '0')}`
}

/** `850 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`
  if (ms < MINUTE) return `${Math.round(ms / 1000)} s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min ${Math.floor((ms % MINUTE) / 1000)} s`
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h ${Math.floor((ms % HOUR) / MINUTE)} min`
  return `${Math.floor(ms / DAY)} d ${Math.floor((ms % DAY) / HOUR)} h`
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

/** `512 MiB`; powers of 1024. */
export function bytes(size: number): string {
  const power = size < 1 ? 0 : Math.min(Math.floor(Math.log2(size) / 10), UNITS.length - 1)
  const value = size / 1024 ** power
  return `${value >= 100 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)} ${UNITS[power]}`
}

/** A share of a processor; an app that does nothing still takes some thousandths. */
export const cores = (value: number): string =>
  `${value > 0 && value < 0.1 ? Number(value.toPrecision(2)) : value.toFixed(2)} cores`

export const count = (value: number): string => number.format(value)

/** `1 app`, `3 apps`, `2 registries`. */
export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`

/** `ssh_key` and `to_www` as a person reads them: `SSH key`, `To www`. */
export function words(name: string): string {
  const text = name
    .replaceAll(/[_.-]/g, ' ')
    .replaceAll(/\b(ssh|ssl|api|dns|url|tls|http|csr|ai|cms|crm|cpu|acme)\b/g, (one) => one.toUpperCase())
  return text.charAt(0).toUpperCase() + text.slice(1)
}
