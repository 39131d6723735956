import { Command, CommanderError } from 'commander'
import { CommandError } from './terminal.ts'
import { firstWord } from './verb-choice.ts'
import type { Verb } from './verb.ts'

/** A group of verbs under a heading of `--help`. */
export interface Group {
  heading: string
  verbs: readonly Verb[]
}

/** Text without a line end of its own, after which the caller says where help is. */
const sentence = (text: string) => text.replace(/^error: /, '').trim()

/** Makes a command of a wrong call an error of ours, and writes nothing by itself but help. */
export function tame(command: Command): Command {
  return command.exitOverride().configureOutput({ writeErr: () => {}, outputError: () => {} })
}

/** Adds a verb. Its file is loaded only when it is called: a list of verbs needs its line alone. */
export async function addVerb(parent: Command, verb: Verb, heading: string, is_called: boolean) {
  const command = tame(parent.command(verb.name)).summary(verb.summary).helpGroup(heading)
  if (is_called) (await verb.load()).default(command)
  return command
}

/** The whole command line, of which only the verb that is called is loaded. */
export async function createProgram(
  version: string,
  groups: readonly Group[],
  words: readonly string[],
): Promise<Command> {
  const program = tame(new Command('portreeve'))
    .description(`Portreeve ${version}: self-hosted application hosting.`)
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this, or what a command takes')
    .helpCommand(false)
    .enablePositionalOptions()
    .showSuggestionAfterError(true)
    .configureHelp({ sortSubcommands: false, showGlobalOptions: false })
    .addHelpText('after', `\n"portreeve <command> --help" tells what a command takes.`)
  const called = firstWord(words[0] === 'help' ? words.slice(1) : words)
  for (const { heading, verbs } of groups)
    for (const verb of verbs) await addVerb(program, verb, heading, verb.name === called)
  return program
}

/** The command that words lead to, and as it is typed. */
function commandOf(program: Command, words: readonly string[]): { command: Command; typed: string } {
  let command = program
  let typed = program.name()
  for (const word of words) {
    const below = command.commands.find((one) => one.name() === word)
    if (!below) break
    command = below
    typed += ` ${word}`
  }
  return { command, typed }
}

/** What is wrong with a call. Of a command that lacks one of its own the parser says nothing but that it shows help. */
function wordsOf({ code, message }: CommanderError, { commands }: Command): string {
  if (code !== 'commander.help') return sentence(message)
  return `It takes one of ${commands.map((one) => one.name()).join(', ')}`
}

/** Runs what was typed. A wrong call ends as a `CommandError` with the code 2. */
export async function runProgram(program: Command, words: readonly string[]): Promise<void> {
  // `portreeve help x` and `portreeve version` are what people try first.
  const [first, ...rest] = words
  if (first === undefined || (first === 'help' && rest.length === 0)) return program.outputHelp()
  let typed = [...words]
  if (first === 'help') typed = [...rest, '--help']
  if (first === 'version') typed = ['--version']
  try {
    await program.parseAsync(typed, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return
    const { command, typed: of } = commandOf(program, words)
    throw new CommandError(`${wordsOf(error, command)}. Try ${of} --help.`.replace(/\.\. Try/, '. Try'), 2)
  }
}
