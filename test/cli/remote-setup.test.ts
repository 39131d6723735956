import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { startSshMachine } from '#test/support/ssh-machine'
import { freePorts } from '#test/support/portreeve'
import { remoteSetup } from '../../cli/setup/remote.ts'
import { parseSettings } from '../../cli/setup/settings-file.ts'

const SECRET = `it's "a" secret $HOME \`id\``
const BUILD = '0123456789abcdef'
const SOMEBODY = 12_345
/** Where a program of this build would be looked for by whoever knows the build, as everybody does. */
const TAKEN = `/tmp/portreeve-${BUILD}`
const program = process.execPath
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ptr-remote-'))
  // Stands in the place of the program: writes down what everybody on the machine can see while it
  // runs.
  const script = join(folder, 'program')
  writeFileSync(
    script,
    `#!/bin/bash
cat > ${folder}/settings
printf '%s\\n' "$0" "$@" > ${folder}/words
stat --format '%a %u' "$(dirname "$0")" > ${folder}/mode
for ((pid = $$; pid > 1; pid = $(awk '/^PPid/ { print $2 }' /proc/$pid/status))); do
  tr '\\0' ' ' < /proc/$pid/cmdline >> ${folder}/seen
done
`,
  )
  chmodSync(script, 0o755)
  // What settings were given to as arguments, where everybody can read them.
  mkdirSync(join(folder, 'path'))
  writeFileSync(
    join(folder, 'path/env'),
    `#!/bin/bash\nprintf '%s\\n' "$@" >> ${folder}/seen\nexec /usr/bin/env "$@"\n`,
    { mode: 0o755 },
  )
  Object.defineProperty(process, 'execPath', { value: script, configurable: true })
  process.env.PORTREEVE_BUILD = BUILD
})
afterEach(() => {
  Object.defineProperty(process, 'execPath', { value: program, configurable: true })
  delete process.env.PORTREEVE_BUILD
  for (const path of [folder, TAKEN]) rmSync(path, { recursive: true, force: true })
})

it('a machine that runs no program in /tmp is set up all the same', async () => {
  const [port, http, https] = await freePorts(3)
  // Nothing there becomes a program, as on a file system that is mounted with noexec.
  writeFileSync(
    join(folder, 'path/chmod'),
    '#!/bin/bash\ncase $2 in /tmp/*) exit 0 ;; esac\nexec /usr/bin/chmod "$@"\n',
    { mode: 0o755 },
  )
  const before = readdirSync('/tmp')
  const machine = await startSshMachine({ PATH: `${folder}/path:${process.env.PATH}` })
  const ports = { PORT: String(port), PORTREEVE_HTTP_PORT: String(http), PORTREEVE_HTTPS_PORT: String(https) }
  try {
    await remoteSetup(ports, machine.target, {
      dataDir: join(folder, 'data'),
      binDir: join(folder, 'bin'),
      identity: machine.identity,
      hostKey: machine.host_key,
    })
  } finally {
    await machine.close()
  }
  const [path] = readFileSync(join(folder, 'words'), 'utf8').split('\n')
  expect(path).toMatch(/^\/var\/tmp\/portreeve-\w{10}\/portreeve$/)
  const left = readdirSync('/tmp').filter((name) => /^portreeve-\w{10}$/.test(name) && !before.includes(name))
  expect([existsSync(dirname(path!)), left]).toEqual([false, []])
})

it('another machine is set up by a program that nobody else there could have changed, with settings that nobody else sees', async () => {
  writeFileSync(TAKEN, 'of somebody else')
  chmodSync(TAKEN, 0o666)
  chownSync(TAKEN, SOMEBODY, SOMEBODY)
  const [port, http, https] = await freePorts(3)
  const machine = await startSshMachine({ PATH: `${folder}/path:${process.env.PATH}` })
  try {
    await remoteSetup(
      {
        PORT: String(port),
        PORTREEVE_HTTP_PORT: String(http),
        PORTREEVE_HTTPS_PORT: String(https),
        PORTREEVE_ADMIN_PASSWORD: SECRET,
      },
      machine.target,
      {
        dataDir: join(folder, 'data'),
        binDir: join(folder, 'bin'),
        identity: machine.identity,
        hostKey: machine.host_key,
      },
    )
  } finally {
    await machine.close()
  }
  const told = (name: string) => readFileSync(join(folder, name), 'utf8')
  expect(parseSettings(told('settings'))).toMatchObject({ PORTREEVE_ADMIN_PASSWORD: SECRET })
  expect(told('seen')).toContain('setup --settings-stdin')
  expect(told('seen')).not.toContain('secret $HOME')
  const [path, ...words] = told('words').trim().split('\n')
  expect([path === TAKEN, told('mode').trim(), readFileSync(TAKEN, 'utf8')]).toEqual([
    false,
    '700 0',
    'of somebody else',
  ])
  expect(words).toEqual([
    'setup',
    '--settings-stdin',
    '--data-dir',
    join(folder, 'data'),
    '--bin-dir',
    join(folder, 'bin'),
  ])
  expect(existsSync(dirname(path!))).toBe(false)
})
