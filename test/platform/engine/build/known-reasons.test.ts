import { describe, expect, it } from 'vitest'
import { buildError } from '#server/platform/engine/build/failure'
import { knownReason } from '#server/platform/engine/build/known-reasons'
import { tellingLines } from '#server/platform/engine/build/telling-lines'

describe('the reason of a failed build is told by what its tool printed', () => {
  it.each([
    ["npm error 404  '@acme/ui@^1' is not in this registry.", '`@acme/ui` is not in the registry'],
    ["npm error 404  The requested resource '@a/b@^1' could not be found or you", '`@a/b` is not in'],
    ["i.ts(1,7): error TS2322: Type 'string' is not assignable", 'TypeScript refuses `i.ts(1,7)`'],
    ["src/index.ts:3:7 - error TS2322: Type 'string' is not", 'TypeScript refuses `src/index.ts:3:7`'],
    ['error Couldn\'t find package "left-pda" on the "npm" registry.', '`left-pda` is not in'],
    ['error: GET https://registry.example/@acme%2fui - 404', '`@acme/ui` is not in'],
    ['npm error notarget No matching version found for ms@^99.', 'No version of `ms`'],
    ['ERR_PNPM_NO_MATCHING_VERSION  No matching version found for @a/b@^9', 'No version of `@a/b`'],
    ['error Couldn\'t find any versions for "ms" that matches "^99"', 'No version of `ms`'],
    ['error: No version matching "^99" found for specifier "ms" (but package exists)', 'No version of `ms`'],
    ['npm error ERESOLVE unable to resolve dependency tree', 'legacy-peer-deps'],
    ['npm error code EBADENGINE', 'another version of Node'],
    ['error foo@2.0.0: The engine "node" is incompatible with this module. Expected', 'another version'],
    ['npm error Unsupported URL Type "workspace:": workspace:*', 'packageManager'],
    ['npm error Missing script: "build"', 'no script `build`'],
    ['error Command "serve" not found.', 'no script `serve`'],
    ["Error: Cannot find module '@rollup/rollup-linux-x64-gnu'. npm has a bug", 'another system'],
    ["Error: Cannot find module '../lightningcss.linux-x64-gnu.node'", 'another system'],
    ['npm error syscall spawn git ENOENT', 'Aptfile'],
    ['ERROR: No matching distribution found for flask==99', '`flask` fits'],
    ["ERROR: Could not install: Failed to resolve 'pypi.example' ([Errno -3]", 'host pypi.example could not'],
    ['npm error getaddrinfo EAI_AGAIN registry.example', 'host registry.example could not'],
    ['error: Failed to resolve host: registry.example', 'host registry.example could not'],
    ['Failed to resolve import "./Foo" from "src/main.ts". Does the file exist?', '`./Foo` is not in'],
    ['main.go:2:8: no required module provides package github.com/none/such; to', 'github.com/none/such'],
    ['Could not reach host index.gems.example. Check your network', 'host index.gems.example could'],
    ['main.go:4:2: missing go.sum entry for module', 'go mod tidy'],
    ['go: go.mod requires go >= 1.26.1 (running go 1.25)', 'Go 1.26.1'],
    ['Your Ruby version is 3.4.1, but your Gemfile specified ~> 3.1.0', 'Ruby ~> 3.1.0'],
    ['- Root composer.json requires PHP extension ext-gd * but it is missing', 'ext-gd'],
    ['Fatal error compiling: error: release version 25 not supported', 'version of Java'],
    ['error: package `x v1.0.0` cannot be built because it requires rustc 1.90 or newer', 'Rust 1.90'],
    ['Could not resolve "./components/Header.js" from "src/main.js"', '`./components/Header.js`'],
    ["Module not found: Error: Can't resolve '@/lib/db' in '/app/src'", '`@/lib/db`'],
    ["src/a.ts(1,2): error TS2307: Cannot find module './Thing' or its type", '`./Thing`'],
    ["Error: Cannot find module 'expresss'", 'package `expresss`'],
    ["Module not found: Can't resolve '@acme/ui/button'", 'package `@acme/ui`'],
    ["ModuleNotFoundError: No module named 'flask_cors'", '`flask_cors` of Python'],
    ['cannot load such file -- sinatra/base (LoadError)', 'gem `sinatra/base`'],
    ['src/a.c:1:10: fatal error: libpq-fe.h: No such file or directory', '`libpq-fe.h`'],
    ['Error: pg_config executable not found.', '`pg_config`'],
    ["Package 'cairo', required by 'virtual:world', not found", '`cairo`'],
    ['Error: error:0308010C:digital envelope routines::unsupported', 'older Node'],
    ['FATAL ERROR: Reached heap limit - JavaScript heap out of memory', 'heap'],
    ["./build.sh: line 2: $'\\r': command not found", 'Windows'],
    ["sleep: invalid time interval '100\\r'", 'Windows'],
    ['/bin/sh: 1: ./build.sh: Permission denied', '`./build.sh` may not be run'],
    ['Error: DATABASE_URL is not set', 'variable DATABASE_URL'],
    ['Error: Missing environment variable STRIPE_SECRET_KEY', 'variable STRIPE_SECRET_KEY'],
    ['Error: Invalid environment variables', 'variables that the lines'],
    ['compiled successfully', undefined],
    ['warning: the option FOO_BAR has been renamed', undefined],
  ])('%j', (line, told) => {
    const reason = knownReason(['before', line, 'after'], 'build')
    if (told === undefined) expect(reason).toBeUndefined()
    else expect(reason).toContain(told)
  })

  it.each([
    '[Vue warn]: Failed to resolve component: FancyButton',
    'error: Failed to resolve entry for package "lib"',
    'PORT is not set, using 3000',
    'NODE_ENV is not set, defaulting to production',
    'ReferenceError: MAX_SIZE is not defined',
  ])('and nothing is made up of a line that tells none: %s', (line) => {
    expect(knownReason([line], 'build')).toBeUndefined()
    expect(knownReason([line], 'run')).toBeUndefined()
  })

  it('and in words of its own when it happens to an app that runs', () => {
    const lines = ['Error: getaddrinfo ENOTFOUND shop-db']
    expect(knownReason(lines, 'run')).toContain('The host shop-db could not be found: correct its address')
    expect(knownReason(lines, 'build')).toContain('mirror')
  })
})

describe('npm 11, which follows a refusal with a page of its options', () => {
  const refused = [
    'npm error code EUSAGE',
    'npm error',
    'npm error `npm ci` can only install packages when your package.json and package-lock.json or npm-shrinkwrap.json are in sync. Please update your lock file.',
    'npm error',
    'npm error Missing: ms@2.1.2 from lock file',
    'npm error',
    'npm error Clean install a project',
    'npm error',
    'npm error Usage:',
    'npm error npm ci',
    ...Array.from({ length: 90 }, (_, at) => `npm error   --option-${at}`),
    'npm error Run "npm help ci" for more info',
    'npm error A complete log of this run can be found in: /root/.npm/_logs/x.log',
  ]
  it('is told by its reason, which stays in the log', () => {
    const error = buildError({
      message: 'process "/bin/sh -c npm ci" did not complete successfully: exit code: 1',
      lines: refused,
      dockerfile: '',
      memory_bytes: 1,
      memory: 'fine',
    })
    expect(error.hint).toContain('package-lock.json does not fit package.json')
    expect(error).toMatchObject({
      log: expect.arrayContaining(['npm error Missing: ms@2.1.2 from lock file']),
    })
    expect(tellingLines(refused).join('\n')).not.toContain('--option-')
    expect(tellingLines(refused).at(-1)).toBe('npm error Missing: ms@2.1.2 from lock file')
  })
})
