import { describe, expect, it } from 'vitest'
import { PERMISSION_CALLERS, verdictOf } from '#server/http/permissions'
import { readDefinitions } from '#test/support/routes'
import { groupsOf, type Role, ROLES, roleMay } from '../../dashboard/src/features/team/roles.ts'

const endpoints = await readDefinitions()
const CALLERS: Record<Role, string> = {
  reader: 'platform viewer',
  viewer: 'viewer',
  developer: 'developer',
  owner: 'owner',
  admin: 'admin',
}
const DOCUMENT = {
  tags: [{ name: 'apps' }, { name: 'empty' }],
  paths: {
    '/api/apps': {
      get: { summary: 'List apps', tags: ['apps'], 'x-access': 'viewer' },
      post: { summary: 'Create an app', tags: ['apps'], 'x-access': 'developer' },
    },
    '/api/audit-logs': { get: { summary: 'List audit lines', tags: ['audit'], 'x-access': 'admin' } },
  },
}

describe('what roles may do', () => {
  it.each(ROLES.map(({ key }) => key))('is told of %s as every request is judged', (role) => {
    expect(endpoints.length).toBeGreaterThan(200)
    // Without a project in the address the body names it, and the service judges the role in that.
    const judged = endpoints.filter(
      ({ definition: { access, scope } }) => scope !== undefined || !['developer', 'owner'].includes(access),
    )
    const wrong = judged.filter(({ method, definition }) => {
      const verdict = verdictOf(definition, method.toUpperCase(), PERMISSION_CALLERS[CALLERS[role]]!)
      return roleMay(role, definition.access) !== (verdict === 'yes')
    })
    expect(wrong.map(({ method, path }) => `${method} ${path}`)).toEqual([])
  })
  it('leaves what it does not know to administrators', () => {
    expect(ROLES.filter(({ key }) => roleMay(key, 'a new word')).map(({ key }) => key)).toEqual(['admin'])
  })
  it('stands in the groups of the API, with how much of each a role may', () => {
    const [apps, audit, ...others] = groupsOf(DOCUMENT, '')
    expect(others).toEqual([])
    expect(apps).toMatchObject({
      name: 'apps',
      counts: { reader: 1, viewer: 1, developer: 2, owner: 2, admin: 2 },
    })
    expect(audit).toMatchObject({ name: 'audit', counts: { owner: 0, admin: 1 } })
  })
  it('is found by a text', () => {
    expect(
      groupsOf(DOCUMENT, ' create ').flatMap(({ rights }) => rights.map(({ summary }) => summary)),
    ).toEqual(['Create an app'])
  })
})
