import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { adoptSettings } from '../../cli/setup/installed.ts'

let data: string
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'ptr-installed-'))
  mkdirSync(join(data, 'program'))
  writeFileSync(join(data, 'portreeve.env'), 'PORT="19444"\nPORTREEVE_BASE_DOMAIN="apps.test"\n')
})
afterEach(() => rmSync(data, { recursive: true, force: true }))

function adopted(env: Record<string, string | undefined>, program = join(data, 'program/portreeve')) {
  const all = { ...env }
  adoptSettings(all, program)
  return all
}

it('a program in its installation knows the settings of its server; what the environment says goes first', () => {
  expect(adopted({ PORTREEVE_BASE_DOMAIN: 'other.test' })).toEqual({
    PORT: '19444',
    PORTREEVE_BASE_DOMAIN: 'other.test',
    PORTREEVE_DATA_DIR: data,
  })
})

it('a program in a folder of its own finds its data by the link beside it', () => {
  const folder = join(data, 'lib')
  mkdirSync(folder)
  symlinkSync(data, join(folder, 'data'))
  expect(adopted({}, join(folder, 'portreeve'))).toMatchObject({ PORT: '19444', PORTREEVE_DATA_DIR: data })
})

it('whoever cannot read the data of the installation is told to be root, or a client', () => {
  const folder = join(data, 'lib')
  mkdirSync(folder)
  symlinkSync(join(data, 'gone'), join(folder, 'data'))
  const call = (env: Record<string, string>) => adopted(env, join(folder, 'portreeve'))
  expect(() => call({})).toThrow(`This user cannot read ${join(data, 'gone')}: run this as root.`)
  expect(call({ PORTREEVE_DATA_DIR: '/srv/other' })).toEqual({ PORTREEVE_DATA_DIR: '/srv/other' })
})

it('a program that lies elsewhere, and a call about another installation, take nothing over', () => {
  expect(adopted({}, join(data, 'portreeve'))).toEqual({})
  expect(adopted({ PORTREEVE_DATA_DIR: '/srv/other' })).toEqual({ PORTREEVE_DATA_DIR: '/srv/other' })
})
