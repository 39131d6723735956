import { showLogs } from '../logs.ts'
import { CommandError } from '../terminal.ts'
import { defineVerb } from '../verb.ts'

const MOST_LINES = 100_000

function lineCount(text: string): number {
  const lines = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN
  if (!(lines <= MOST_LINES)) throw new CommandError(`--lines must be a number up to ${MOST_LINES}.`, 2)
  return lines
}

export default defineVerb((verb) => {
  verb
    .description(
      'Shows what the server that install.sh started writes: to the journal of systemd, or to a file where there is no systemd.',
    )
    .option('-f, --follow', 'go on with lines as they are written')
    .option('-n, --lines <count>', 'lines to begin with', '100')
    .action(({ follow = false, lines }: { follow?: boolean; lines: string }) =>
      showLogs(process.env, { follow, lines: lineCount(lines) }),
    )
})
