import { own } from '#server/kernel/own'
import type { SourceTree } from './plan.ts'

/** Debian packages of programs that the first line of a script may name, and that no base image brings. */
const PACKAGES: Readonly<Record<string, string>> = {
  zsh: 'zsh',
  fish: 'fish',
  ksh: 'ksh',
  mksh: 'mksh',
  tcsh: 'tcsh',
  csh: 'csh',
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
const SHELLS = new Set(['sh', 'bash', 'dash', 'awk', ...Object.keys(PACKAGES), ...Object.keys(ON_DEBIAN)])

/** What the first line of a script names, with its options, which begin with a blank; undefined for what is unknown. */
export function interpreterOf(
  tree: SourceTree,
  script: string,
): { program: string; options: string } | undefined {
  const first = (tree.read(script) ?? '').slice(0, 200).split(/\r?\n/)[0] ?? ''
  const found =
    /^#![ ]*(?:\/\S{0,40}\/env[ ]+(?:-S[ ]+)?|(?:\/\w{1,20}){1,4}\/)([\w.]{1,20})((?:[ ]+-\w{1,20}){0,4})[ ]*$/.exec(
      first,
    )
  const program = found?.[1]
  return program !== undefined && SHELLS.has(program)
    ? { program, options: found![2]!.replace(/[ ]+/g, ' ') }
    : undefined
}

/** Packages for the interpreters of the scripts that these lines run, and of the shells that they name themselves. */
export function interpreterPackages(
  tree: SourceTree,
  lines: readonly (string | null)[],
  on_debian: boolean,
): string[] {
  const words = lines.flatMap((line) => (line ?? '').split(/[\s;&|()"']+/).slice(0, 200))
  const programs = words.flatMap((word) => {
    const path = word.replace(/^\.\//, '')
    return [word, ...(tree.has(path) ? [interpreterOf(tree, path)?.program ?? ''] : [])]
  })
  const known = on_debian ? { ...PACKAGES, ...ON_DEBIAN } : PACKAGES
  return [...new Set(programs.flatMap((program) => own(known, program) ?? []))]
}
