import { own } from '#server/kernel/own'
import type { SourceTree } from './plan.ts'
import { readJson, textAt } from './text-formats.ts'
import { skim } from './tree-queries.ts'

/** Debian packages of programs that the first line of a script may name, and that no base image brings. */
const PACKAGES: Readonly<Record<string, string>> = {
  zsh: 'zsh',
  fish: 'fish',
  ksh: 'ksh',
  mksh: 'mksh',
  tcsh: 'tcsh',
  csh: 'csh',
  yash: 'yash',
  elvish: 'elvish',
  xonsh: 'xonsh',
  busybox: 'busybox',
  expect: 'expect',
  gawk: 'gawk',
}
/** Interpreters that a script of the plain Debian image may want as well. */
const ON_DEBIAN: Readonly<Record<string, string>> = {
  python3: 'python3',
  python: 'python-is-python3',
  perl: 'perl',
  ruby: 'ruby',
  node: 'nodejs',
  php: 'php-cli',
  tclsh: 'tcl',
  lua: 'lua5.4',
}
/** What every image has. */
const EVERYWHERE = new Set(['sh', 'bash', 'dash', 'awk'])

/** What the first line of a script names, with its options, which begin with a blank; undefined when it names nothing. */
export function interpreterOf(
  tree: SourceTree,
  script: string,
): { program: string; options: string } | undefined {
  const first = (tree.read(script) ?? '').slice(0, 200).split(/\r?\n/)[0] ?? ''
  const found =
    /^#![ ]*(?:\/\S{0,40}\/env[ ]+(?:-S[ ]+)?|(?:\/[\w.-]{1,20}){1,4}\/)([\w.-]{1,20})((?:[ ]+[\w./-]{1,20}){0,6})[ ]*$/.exec(
      first,
    )
  return found === null ? undefined : { program: found[1]!, options: found[2]!.replace(/[ ]+/g, ' ') }
}

/** Scripts that run scripts; deeper than anybody writes them. */
const DEPTH = 4

const wordsOf = (text: string): string[] => text.split(/[\s;&|()"'`$=]+/).slice(0, 2000)

/** The programs that these lines run, those of the scripts that they run, and so on. */
function programsOf(tree: SourceTree, lines: readonly (string | null)[]): Set<string> {
  const given = lines.flatMap((line) => wordsOf(line ?? ''))
  const programs = new Set(given)
  const seen = new Set([''])
  const unseen = (names: readonly string[]) => {
    const found = [...new Set(names)].filter((name) => !seen.has(name))
    found.forEach((name) => seen.add(name))
    return found
  }
  let words = given
  for (let depth = 0; depth < DEPTH && words.length > 0; depth += 1) {
    const names = unseen(words.map((word) => word.replace(/^\.\//, '')))
    const files = names
      .filter((path) => tree.has(path))
      .map((path) => ({ path, program: interpreterOf(tree, path)?.program }))
    files.forEach(({ program }) => program !== undefined && programs.add(program))
    words = [
      // `npm run go` runs the line of package.json that is called `go`.
      ...names.flatMap((name) => wordsOf(textAt(readJson(tree, 'package.json'), 'scripts', name) ?? '')),
      // What lies in a program of another language is no list of commands.
      ...files
        .filter(({ program }) => program !== undefined && isShell(program))
        .flatMap(({ path }) => wordsOf(skim(tree, path).slice(0, 16_384))),
    ]
  }
  return programs
}

const isShell = (program: string): boolean =>
  EVERYWHERE.has(program) || /^(?:.{0,4}sh|elvish|busybox)$/.test(program)

/** Packages for the interpreters of the scripts that these lines run, and of the shells that they name themselves. */
export function interpreterPackages(
  tree: SourceTree,
  lines: readonly (string | null)[],
  on_debian: boolean,
): string[] {
  const known = on_debian ? { ...PACKAGES, ...ON_DEBIAN } : PACKAGES
  return [...new Set([...programsOf(tree, lines)].flatMap((program) => own(known, program) ?? []))]
}

/** The interpreter of a script that is neither a shell nor a language that an image brings: a plan warns of it. */
export function unknownInterpreter(tree: SourceTree, script: string): string | undefined {
  const program = interpreterOf(tree, script)?.program
  return program === undefined ||
    EVERYWHERE.has(program) ||
    own(PACKAGES, program) !== undefined ||
    own(ON_DEBIAN, program) !== undefined
    ? undefined
    : program
}
