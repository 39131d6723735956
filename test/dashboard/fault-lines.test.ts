import { describe, expect, it } from 'vitest'
import { faultLines, lineOfPath, textFault } from '../../dashboard/src/lib/fault-lines.ts'

const TEXT = `services:
  # web: not this one
  db:
    image: postgres:18
  web:
    image: nginx:1.29
    environment:
      - image=none
    "pidd": 1
volumes:
  web: {}
`

describe('what is wrong with a text', () => {
  it('stands at the line that the message names', () => {
    const message = 'The file is not valid YAML (line 4): a colon is missing.'
    expect(faultLines(TEXT, 'compose', { compose: message, name: 'Is taken.' })).toEqual([
      { line: 4, message },
    ])
  })
  it('stands at the key that the path names', () => {
    expect(faultLines(TEXT, 'compose', { 'compose.services.web.pidd': 'Is unknown.' })).toEqual([
      { line: 9, message: 'Is unknown.' },
    ])
  })
  it('stands at the nearest key that there is', () => {
    expect(lineOfPath(TEXT, ['services', 'web', 'ports', '0'])).toBe(5)
    expect(lineOfPath(TEXT, ['services', 'queue'])).toBe(1)
    expect(lineOfPath(TEXT, ['volumes', 'web'])).toBe(11)
    expect(lineOfPath(TEXT, ['volumes', 'db'])).toBe(10)
    expect(lineOfPath(TEXT, ['networks'])).toBeUndefined()
  })
  it('has no line when it is about the whole text', () => {
    expect(faultLines(TEXT, 'compose', { compose: 'Must not be empty.' })).toEqual([])
  })
  it('is said under the text without the name that the field has in the API', () => {
    expect(textFault('compose', { name: 'Is taken.', compose: 'Must not be empty.' })).toBe(
      'Must not be empty.',
    )
    expect(textFault('compose', { 'compose.services.web': 'Is unknown.' })).toBe('services.web: Is unknown.')
    expect(textFault('compose', { name: 'Is taken.', compose_path: 'Is no file.' })).toBeUndefined()
  })
})
