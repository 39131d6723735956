import { expect, it } from 'vitest'
import { valuesOf } from '#server/templates/generate'
import type { TemplateVariable } from '#server/templates/schema'

const addresses = {
  host: (service: string) => `${service}.example.com`,
  url: (service: string) => `https://${service}.example.com`,
}
const variable = (fields: Partial<TemplateVariable>): TemplateVariable => ({
  description: 'A value.',
  required: false,
  secret: false,
  ...fields,
})
const values = (variables: Record<string, TemplateVariable>, given: Record<string, string> = {}) =>
  Object.fromEntries(valuesOf({ variables }, given, addresses))

it('a password that nobody gave is new each time and as long as asked', () => {
  const variables = { KEY: variable({ generate: { kind: 'password', length: 32 } }) }
  const { KEY: first } = values(variables)
  expect(first).toMatch(/^[A-Za-z0-9]{32}$/)
  expect(values(variables).KEY).not.toBe(first)
})

it('hexadecimal and base64 values have the length that the software expects', () => {
  const made = values({
    HEX: variable({ generate: { kind: 'hex', length: 33 } }),
    BASE64: variable({ generate: { kind: 'base64', bytes: 32, prefix: 'base64:' } }),
  })
  expect(made.HEX).toMatch(/^[0-9a-f]{33}$/)
  expect(Buffer.from(made.BASE64!.replace(/^base64:/, ''), 'base64')).toHaveLength(32)
  expect(made.BASE64).toMatch(/^base64:/)
})

it('addresses are those of the app that is made', () => {
  expect(
    values({
      URL: variable({ generate: { kind: 'url', service: 'web' } }),
      HOST: variable({ generate: { kind: 'host', service: 'web' } }),
    }),
  ).toEqual({ URL: 'https://web.example.com', HOST: 'web.example.com' })
})

it('a value that is given wins over a generated one and a default', () => {
  const variables = {
    KEY: variable({ generate: { kind: 'password', length: 32 } }),
    ZONE: variable({ default: 'Etc/UTC' }),
  }
  expect(values(variables, { KEY: 'mine', ZONE: 'Europe/Berlin' })).toEqual({
    KEY: 'mine',
    ZONE: 'Europe/Berlin',
  })
  expect(values(variables, { KEY: 'mine' }).ZONE).toBe('Etc/UTC')
})

it('what is missing and what is unknown is told at once, by its path', () => {
  const variables = { EMAIL: variable({ required: true }) }
  expect(() => values(variables, { EMIAL: 'a@example.com' })).toThrow(
    expect.objectContaining({
      code: 'VALIDATION_ERROR',
      details: [
        expect.objectContaining({ path: 'variables.EMIAL', message: expect.stringContaining('EMAIL') }),
        expect.objectContaining({ path: 'variables.EMAIL' }),
      ],
    }),
  )
})

it.each(['constructor', '__proto__', 'toString'])('a variable called %s is unknown, not inherited', (key) => {
  expect(() => values({}, JSON.parse(`{"${key}":"x"}`))).toThrow(/variables/)
})
