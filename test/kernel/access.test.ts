import { describe, expect, it } from 'vitest'
import { type Access, type Actor, authorize, visibleProjects } from '#server/kernel/access'

const actor = (change: Partial<Actor> & { project?: 'owner' | 'developer' | 'viewer' } = {}): Actor => ({
  user_id: 'usr_1',
  email: '',
  name: '',
  role: 'member',
  method: 'bearer',
  credential_id: '',
  scope: 'full',
  address: '',
  request_id: '',
  projects: new Map(change.project ? [['prj_1', change.project]] : []),
  ...change,
})
const target = { project_id: 'prj_1', noun: 'app' }
/** 200, or the status of the refusal. */
function answer(
  who: Actor,
  access: Access,
  on: typeof target | undefined = target,
  effect?: 'read' | 'deploy' | 'write',
): number {
  try {
    authorize(who, access, on, effect)
    return 200
  } catch (error) {
    return (error as { status: number }).status
  }
}
const levels = ['self', 'viewer', 'member', 'developer', 'owner', 'admin'] as const

describe('who may do what in a project', () => {
  it.each([
    ['an administrator', actor({ role: 'admin' }), [200, 200, 200, 200, 200, 200]],
    ['an owner', actor({ project: 'owner' }), [200, 200, 200, 200, 200, 403]],
    ['a developer', actor({ project: 'developer' }), [200, 200, 200, 200, 403, 403]],
    ['a viewer of the project', actor({ project: 'viewer' }), [200, 200, 200, 403, 403, 403]],
    [
      'a platform viewer, whatever the project role',
      actor({ role: 'viewer', project: 'owner' }),
      [200, 200, 403, 403, 403, 403],
    ],
    ['somebody who is no member: it does not exist', actor(), [404, 404, 404, 404, 404, 404]],
    [
      "a key narrowed to another project, even an administrator's",
      actor({ role: 'admin', only_projects: new Set(['prj_2']) }),
      [404, 404, 404, 404, 404, 404],
    ],
    [
      "an administrator's key narrowed to this project, which changes no account",
      actor({ role: 'admin', only_projects: new Set(['prj_1']) }),
      [403, 200, 200, 200, 200, 403],
    ],
  ])('%s', (_who, who, expected) => {
    expect(levels.map((level) => answer(who, level))).toEqual(expected)
  })
  it.each([
    ['a key that may only read', actor({ project: 'owner', scope: 'read' }), [200, 403, 403]],
    ['a key that may read and deploy', actor({ project: 'owner', scope: 'deploy' }), [200, 200, 403]],
    ['a whole key', actor({ project: 'owner' }), [200, 200, 200]],
  ])('%s', (_who, who, expected) => {
    expect(
      (['read', 'deploy', 'write'] as const).map((effect) => answer(who, 'developer', target, effect)),
    ).toEqual(expected)
  })
  it('a narrowed key learns nothing of a project that is not its own', () => {
    expect(answer(actor({ scope: 'read' }), 'developer', target, 'write')).toBe(404)
  })
})

describe('what lists show', () => {
  it.each([
    ['all to an administrator', actor({ role: 'admin' }), undefined],
    ['their projects to members', actor({ project: 'viewer' }), ['prj_1']],
    ['nothing to those without a project', actor(), []],
    [
      'only what a key is narrowed to',
      actor({ role: 'admin', only_projects: new Set(['prj_2']) }),
      ['prj_2'],
    ],
    ['only what both allow', actor({ project: 'owner', only_projects: new Set(['prj_2']) }), []],
  ])('%s', (_what, who, expected) => {
    expect(visibleProjects(who)).toEqual(expected)
  })
})
