import { InvalidArgumentError } from 'commander'

/** The value of an option that counts something. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It takes a whole number.')
  return Number(text)
}

/** The value of an option that is a point in time, as the API takes it. */
export function pointInTime(text: string): string {
  const at = new Date(text)
  if (Number.isNaN(at.getTime()))
    throw new InvalidArgumentError('It takes a time, such as 2026-11-22T08:00:00Z.')
  return at.toISOString()
}

/** The value of an option that is a TCP port. */
export function port(text: string): number {
  const number = wholeNumber(text)
  if (number < 1 || number > 65_535) throw new InvalidArgumentError('It takes a number from 1 to 65535.')
  return number
}
