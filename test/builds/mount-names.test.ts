import { describe, expect, it } from 'vitest'
import { removesByPath, riskyMount } from '#server/builds/mount-names'

describe('a mount has a name that an older builder could remove from the server', () => {
  it.each([
    'type=tmpfs,target=/x/null',
    'type=cache,target=/x/docker.sock',
    'type=cache,TARGET=/x/docker.sock/',
    'type=bind,dst=/x/lock',
    'type=bind,destination=xtables.lock',
    'type=tmpfs,target=/x/.s.PGSQL.5432',
    'type=tmpfs,target=/x/.pwd.lock',
    'type=secret,id=null',
    'type=secret,id=a/null',
    'source=null,type=secret',
    'type=cache,target=/x/.npm,target=/x/null',
    'type=cache,target=/x/${NAME}',
    'type=cache,target=/x/cache$NAME',
    'type=cache,target=/x/cache/${UP}/..',
    'type=cache,target=${NAME:-/x/null}',
    'type=cache,target=/x/cache/.',
    "type=cache,target=/x/'null'",
    'type=cache,target=/x/nu\\ll',
    'type=cache,target=/',
  ])('in %s', (fields) => expect(riskyMount(`--mount=${fields}`)).toBeDefined())
  it.each([
    'type=cache,target=/root/.npm',
    'type=cache,id=null,target=/root/.m2',
    'type=cache,target=${HOME}/.cache/pip',
    'type=cache,sharing=locked,target=/var/lib/apt',
    'type=cache,target=/var/cache/apt/archives/',
    'type=cache,target=/go/pkg/mod',
    'type=cache,target=/root/.cache/go-build',
    'type=cache,target=/usr/local/cargo/registry',
    'type=cache,target=node_modules',
    'type=bind,source=package-lock.json,target=package-lock.json',
    'type=bind,source=yarn.lock,target=/app/yarn.lock',
    'type=bind,target=/src',
    'type=secret,id=NPM_TOKEN',
    'type=secret,id=npm_token',
    'type=secret,id=portreeve-variables',
    'type=secret,id=npmrc,target=/root/.npmrc',
    'type=ssh',
  ])('and none in %s', (fields) => expect(riskyMount(`--mount=${fields}`)).toBeUndefined())
  it('however the flag is written', () =>
    expect(riskyMount('--MOUNT=type=tmpfs,target=/x/null')).toBe('/x/null'))
  it('and none in another flag', () => expect(riskyMount('--network=null')).toBeUndefined())
})

it.each([
  ['20.10.24+dfsg1', true],
  ['23.0.15', true],
  ['24.0.8', true],
  ['24.0.9', false],
  ['25.0.1', true],
  ['25.0.2', false],
  ['26.1.5+dfsg1', false],
  ['29.0.0-rc.1', false],
  ['unknown', true],
])('the builder of engine %s removes what was mounted by its path: %s', (version, removes) =>
  expect(removesByPath(version)).toBe(removes),
)
