import { checkNode } from '#server/start/open-kernel'
import { readInput } from '../client/prompt.ts'
import { remoteSetup, type RemoteSetupOptions } from '../setup/remote.ts'
import { parseSettings } from '../setup/settings-file.ts'
import { setup } from '../setup/setup.ts'
import { CommandError } from '../terminal.ts'
import { defineVerb } from '../verb.ts'

export default defineVerb((verb) => {
  verb
    .description(
      `Sets this machine up, or another one over SSH: a container engine where none answers, this program as a service (systemd, or a supervisor of its own where there is none), settings, a first administrator. Prints the address and the password. Called again, it changes nothing that is right.

Over SSH the key of the machine is shown and confirmed first, then what speaks against the machine is told in a sentence each; only then anything is copied. The agent, or a key without a passphrase, logs in; a user who is not root needs sudo without a password.

Settings are taken from the environment and kept: PORT, HOST and every PORTREEVE_ variable, and on this machine DOCKER_HOST; an empty value takes one away.`,
    )
    .argument('[target]', 'user@host or user@host:port (default: this machine)')
    .option('--data-dir <folder>', 'where everything is kept', '/var/lib/portreeve')
    .option('--bin-dir <folder>', 'where the command portreeve is linked', '/usr/local/bin')
    .option('--identity <file>', 'private key to log in with')
    .option('--host-key <fingerprint>', 'key that the machine must show, instead of asking')
    .option('--settings-stdin', 'read settings from standard input, as lines of the form NAME="value"')
    .action(async (target: string | undefined, options: RemoteSetupOptions & { settingsStdin?: boolean }) => {
      checkNode()
      if (!process.env.PORTREEVE_BUILD)
        throw new CommandError('This command runs from a checkout, which ./install.sh sets up.')
      const env = options.settingsStdin
        ? { ...process.env, ...parseSettings(await readInput()) }
        : process.env
      return target === undefined ? setup(env, options) : remoteSetup(env, target, options)
    })
})
