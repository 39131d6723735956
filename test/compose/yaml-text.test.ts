import { expect, it } from 'vitest'
import { parseCompose } from '#server/compose/parse'
import { readComposeText } from '#server/compose/yaml-text'

const TEXT =
  'services:\n  web:\n    image: "nginx:${TAG}"\n    environment: { GREETING: "${GREETING-hello}" }\n'
const web = (variables: Record<string, string>) => {
  const [service] = parseCompose(TEXT, { variables }).services
  return [service!.image, service!.environment.GREETING]
}

it('a text that was read already is not read again, and no plan finds variables of another in it', () => {
  expect(readComposeText(TEXT)).toBe(readComposeText(TEXT))
  expect(web({ TAG: '1', GREETING: 'good day' })).toEqual(['nginx:1', 'good day'])
  expect(web({ TAG: '2' })).toEqual(['nginx:2', 'hello'])
})
it('only the last few texts are kept, and no long ones', () => {
  const first = readComposeText(TEXT)
  for (const name of ['a', 'b', 'c', 'd']) readComposeText(`services: { ${name}: { image: nginx } }`)
  expect(readComposeText(TEXT)).not.toBe(first)
  const long = `${TEXT}${`# ${'a comment '.repeat(1500)}\n`.repeat(5)}`
  expect(readComposeText(long)).not.toBe(readComposeText(long))
})
it('a number with more digits than the program can count with keeps all of them', () => {
  const text = `services:
  web:
    image: nginx
    environment: { GUILD: 1234567890123456789, GROUP: -1009007199254740993, CARD: 12345678901234567, SIZE: 9007199254740991 }`
  const [service] = parseCompose(text).services
  expect(service!.environment).toEqual({
    GUILD: '1234567890123456789',
    GROUP: '-1009007199254740993',
    CARD: '12345678901234567',
    SIZE: '9007199254740991',
  })
})
