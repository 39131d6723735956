import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { parseCompose } from '#server/compose/parse'
import { readTemplates } from '../../scripts/read-templates.ts'
import { ROOT } from '../support/routes.ts'

const templates = readTemplates(ROOT)
/** A value for every variable, as a deployment would have it. */
const valuesOf = (variables: object) =>
  Object.fromEntries(Object.keys(variables).map((key) => [key, `value-of-${key.toLowerCase()}`]))
const planOf = ({ compose, template }: (typeof templates)[number]) =>
  parseCompose(compose, { variables: valuesOf(template.variables), strict: true })
const offenders = (find: (one: (typeof templates)[number]) => unknown) =>
  templates.flatMap((one) => {
    const found = find(one)
    return found === undefined || (Array.isArray(found) && found.length === 0) ? [] : [[one.slug, found]]
  })

it('there are at least 200 templates, and each keeps the schema', () => {
  expect(templates.length).toBeGreaterThanOrEqual(200)
  expect(new Set(templates.map(({ template }) => template.name)).size).toBe(templates.length)
})

it('every plan resolves: no key is refused, and none is passed over', () => {
  expect(
    offenders((one) => {
      try {
        return planOf(one).ignored.map(({ path }) => path)
      } catch (error) {
        return String(error)
      }
    }),
  ).toEqual([])
})

it('every image has a version, and none is called latest', () => {
  expect(
    offenders((one) =>
      planOf(one).services.flatMap(({ image }) =>
        /:(?!latest|stable|edge|main|master|nightly|dev)[\w.-]*\d[\w.-]*$/.test(image ?? '') ? [] : [image],
      ),
    ),
  ).toEqual([])
})

it('every template has a public service, and each of them a path that is probed', () => {
  expect(
    offenders((one) => {
      const open = planOf(one).services.filter(({ public_port }) => public_port !== null)
      if (open.length === 0) return 'nothing is public'
      return open.filter(({ health_path }) => health_path === null).map(({ name }) => name)
    }),
  ).toEqual([])
})

it('every service has a limit of memory, and together they fit what the template says it needs', () => {
  expect(
    offenders((one) => {
      const { services } = planOf(one)
      const without = services.filter(({ limits }) => !limits.memory_bytes).map(({ name }) => name)
      const largest = Math.max(...services.map(({ limits }) => limits.memory_bytes ?? 0))
      return largest > one.template.minimum_memory_bytes ? [...without, 'needs more than it says'] : without
    }),
  ).toEqual([])
})

it('every volume is either copied by a backup, left out on purpose, or its service is dumped', () => {
  expect(
    offenders((one) => {
      const plan = planOf(one)
      const hints = one.template.backup
      const named = new Set(hints.flatMap((hint) => ('volume' in hint ? [hint.volume] : [])))
      const dumped = new Set(hints.flatMap((hint) => ('service' in hint ? [hint.service] : [])))
      const volumesOf = ({ mounts }: (typeof plan.services)[number]) =>
        mounts.flatMap((mount) => (mount.kind === 'volume' ? [mount.volume] : []))
      const covered = new Set([
        ...named,
        ...plan.services.filter(({ name }) => dumped.has(name)).flatMap(volumesOf),
      ])
      return [
        ...plan.volumes.filter((volume) => !covered.has(volume)),
        ...[...named].filter((volume) => !plan.volumes.includes(volume)),
        ...[...dumped].filter((name) => !plan.services.some((service) => service.name === name)),
      ]
    }),
  ).toEqual([])
})

it('every variable is used by the compose file, and the file uses no other', () => {
  expect(
    offenders((one) => {
      const used = new Set([...one.compose.matchAll(/\$\{([A-Za-z0-9_]+)/g)].map(([, key]) => key!))
      const declared = Object.keys(one.template.variables)
      return [
        ...declared.filter((key) => !used.has(key)),
        ...[...used].filter((key) => !declared.includes(key)),
      ]
    }),
  ).toEqual([])
})

it('no password, key or token stands in a compose file', () => {
  const SECRET = /(PASS(WORD|WD)?|SECRET|TOKEN|API_?KEY|PRIVATE_KEY|ENCRYPTION_KEY)$/i
  // Names of variables that hold no secret although they sound like it.
  const HARMLESS = /^(true|false|yes|no|\d+|1)?$/i
  expect(
    offenders((one) =>
      Object.entries(
        (parse(one.compose) as { services: Record<string, { environment?: Record<string, string> }> })
          .services,
      ).flatMap(([name, { environment = {} }]) =>
        Object.entries(environment)
          .filter(([key, value]) => SECRET.test(key) && !HARMLESS.test(value) && !value.includes('${'))
          .map(([key]) => `${name}.${key}`),
      ),
    ),
  ).toEqual([])
})

it('what is generated for a service names a public service of the file', () => {
  expect(
    offenders((one) => {
      const open = new Set(
        planOf(one)
          .services.filter(({ public_port }) => public_port !== null)
          .map(({ name }) => name),
      )
      return Object.entries(one.template.variables).flatMap(([key, { generate }]) =>
        generate && 'service' in generate && !open.has(generate.service) ? [key] : [],
      )
    }),
  ).toEqual([])
})
