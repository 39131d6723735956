import { posix } from 'node:path'
import { editsBetween } from '#server/kernel/edits'
import { own } from '#server/kernel/own'
import type { SourceTree } from './plan.ts'
import { STACKS } from './stacks/index.ts'
import { compare } from './tree-queries.ts'

/** So many files are named: a longer list is not read. */
const NAMED = 10
/** Files of the source whose names are compared; those near the root come first. */
const COMPARED = 300
const LONGEST_NAME = 60
/** From 0, the same name, to 1, nothing alike; a name less alike than this says nothing. */
const ALIKE = 0.5
/** How near the files of a language are whose sources lie there. */
const SAME_LANGUAGE = 0.6
const COMMON = 0.9

/** What people bring most often; named first where nothing else is near. */
const USUAL = [
  'Dockerfile',
  'package.json',
  'requirements.txt',
  'pyproject.toml',
  'go.mod',
  'composer.json',
  'Gemfile',
  'pom.xml',
  'index.html',
  'Procfile',
]

/** The stack of a source file, by its ending. */
const LANGUAGES: Readonly<Record<string, string>> = {
  ...{ js: 'node', mjs: 'node', cjs: 'node', ts: 'node', tsx: 'node', jsx: 'node', vue: 'node' },
  ...{ py: 'python', ipynb: 'python', rb: 'ruby', go: 'go', rs: 'rust', php: 'php', java: 'java' },
  ...{ kt: 'java', scala: 'scala', clj: 'clojure', cs: 'dotnet', fs: 'dotnet', ex: 'elixir' },
  ...{ exs: 'elixir', erl: 'erlang', swift: 'swift', dart: 'dart', hs: 'haskell', cpp: 'cpp' },
  ...{ cc: 'cpp', c: 'cpp', html: 'static', css: 'static', lua: 'lua', pl: 'perl', r: 'r', jl: 'julia' },
  ...{ zig: 'zig', nim: 'nim', cr: 'crystal', gleam: 'gleam', ml: 'ocaml', sh: 'shell' },
}

/** The files that would have been recognised and are most like what the source has, the nearest first. */
export function nearestFiles(tree: SourceTree): string[] {
  const depth = (path: string) => path.split('/').length
  const files = [...tree.files()]
    .sort((a, b) => depth(a) - depth(b) || compare(a, b))
    .slice(0, COMPARED)
    .map((path) => posix.basename(path).slice(0, LONGEST_NAME).toLowerCase())
  const languages = new Set(files.map((name) => own(LANGUAGES, posix.extname(name).slice(1))))
  const known = new Map<string, number>()
  const note = (name: string, distance: number) =>
    known.set(name, Math.min(distance, known.get(name) ?? Infinity))
  USUAL.forEach((name, at) => note(name, COMMON + at / 100))
  for (const stack of STACKS) {
    const otherwise = languages.has(stack.name) ? SAME_LANGUAGE : 2
    for (const name of stack.looked_for) {
      const nearest = Math.min(...files.map((file) => unlike(posix.basename(name).toLowerCase(), file)))
      note(name, nearest <= ALIKE ? nearest : otherwise)
    }
  }
  note('Dockerfile', Math.min(COMMON, ...files.map((file) => unlike('dockerfile', file))))
  return [...known]
    .sort(([, a], [, b]) => a - b)
    .slice(0, NAMED)
    .map(([name]) => name)
}

/** How unlike two names are, from 0 to 1; one that begins with the other, such as `Dockerfile.prod`, is near. */
function unlike(name: string, file: string): number {
  const [short, long] = name.length < file.length ? [name, file] : [file, name]
  if (short.length > 4 && !short.includes('.') && long.startsWith(short)) return 0.2
  if (posix.extname(name) !== posix.extname(file)) return 1
  const longest = Math.max(long.length, 1)
  return long.length - short.length > longest / 2 ? 1 : editsBetween(name, file) / longest
}
