import { run } from '#server/kernel/process'
import { CommandError } from '../../terminal.ts'
import { type AppOption, getApp, namedApp } from '../apps.ts'
import { defineClientVerb, withNamedApp } from '../client-verb.ts'
import { EXIT } from '../exit-codes.ts'
import { show } from '../output.ts'
import { type ClientOptions, openSession } from '../session.ts'

/** Variables that a program for the desktop needs to find it. */
const DESKTOP = [
  'HOME',
  'DISPLAY',
  'WAYLAND_DISPLAY',
  'XDG_RUNTIME_DIR',
  'XAUTHORITY',
  'DBUS_SESSION_BUS_ADDRESS',
]

async function openInBrowser(url: string): Promise<void> {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(
      (entry): entry is [string, string] => DESKTOP.includes(entry[0]) && entry[1] !== undefined,
    ),
  )
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open'
  // Where there is no desktop, the address on the screen is what can be had.
  await run([program, url], { cwd: '/', env, timeout_ms: 10_000 }).catch(() => undefined)
}

async function open(
  argument: string | undefined,
  options: ClientOptions & AppOption & { dashboard?: boolean },
): Promise<void> {
  const name = namedApp(argument, options)
  const session = await openSession(options)
  const app = await getApp(session, name)
  const url = options.dashboard ? `${session.context.url}/apps/${app.id}` : app.url
  if (!url) throw new CommandError(`${app.name} has no address: it has no web process.`, EXIT.REFUSED)
  // The desktop starts a program for any other kind of address.
  if (!['http:', 'https:'].includes(URL.parse(url)?.protocol ?? ''))
    throw new CommandError(
      `The server says that ${app.name} is at ${url}, which is no address of the web.`,
      EXIT.REFUSED,
    )
  show(options, { url }, () => url)
  if (!options.json && process.stdout.isTTY) await openInBrowser(url)
}

export default defineClientVerb((verb) => {
  withNamedApp(verb)
    .description('Opens an app in the browser, and prints its address.')
    .option('--dashboard', 'its page in the dashboard instead')
    .action(open)
})
