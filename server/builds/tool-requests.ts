import type { SourceTree } from './plan.ts'
import { asFields, at, listAt, readJson, readToml } from './text-formats.ts'

/** A tool that a file names, with the version as it is written there. */
export interface ToolRequest {
  tool: string
  wanted: string
  source: string
}

const MISE_FILES = ['mise.toml', '.mise.toml', '.config/mise.toml']
const MAX_TOOLS = 60
const TOOL_NAME = /^[A-Za-z][\w:@/.+-]{0,80}$/

/** Packages of Nix that are languages, with their version in the name: `nodejs_20`, `python311`, `go_1_22`. */
const NIX_LANGUAGE =
  /^(nodejs|python|go|ruby|php|jdk|openjdk|elixir|erlang|dotnet-sdk|rust|deno|bun)[-_]?(\d+(?:[._]\d+)*)?(?:[-_]x)?$/

/** Tools of asdf, mise, Railpack and Nixpacks, the first file that names one first. */
export function toolRequests(tree: SourceTree): ToolRequest[] {
  const found = [
    ...toolVersionsFile(tree),
    ...MISE_FILES.flatMap((source) => miseTools(at(readToml(tree, source), 'tools'), source)),
    ...miseTools(at(readJson(tree, 'railpack.json'), 'packages'), 'railpack.json'),
    ...nixPackages(tree),
  ].filter(({ tool }) => TOOL_NAME.test(tool))
  return found
    .filter(({ tool }, at) => found.findIndex((one) => one.tool === tool) === at)
    .slice(0, MAX_TOOLS)
}

function toolVersionsFile(tree: SourceTree): ToolRequest[] {
  const lines = (tree.read('.tool-versions') ?? '').slice(0, 16_384).split('\n')
  return lines.flatMap((line) => {
    const [tool, wanted] = line.trim().split(/[ \t]+/)
    return tool && wanted && !tool.startsWith('#') ? [{ tool, wanted, source: '.tool-versions' }] : []
  })
}

function miseTools(tools: unknown, source: string): ToolRequest[] {
  return Object.entries(asFields(tools) ?? {}).flatMap(([tool, value]) => {
    const requested = Array.isArray(value) ? value[0] : (at(value, 'version') ?? value)
    return typeof requested === 'string' || typeof requested === 'number'
      ? [{ tool, wanted: String(requested), source }]
      : []
  })
}

function nixPackages(tree: SourceTree): ToolRequest[] {
  const source = tree.has('nixpacks.toml') ? 'nixpacks.toml' : 'nixpacks.json'
  const file = readToml(tree, 'nixpacks.toml') ?? readJson(tree, 'nixpacks.json')
  return listAt(file, 'phases', 'setup', 'nixPkgs')
    .filter((name) => name !== '...')
    .map((name) => {
      const [, language, digits] = NIX_LANGUAGE.exec(name) ?? []
      if (language === undefined) return { tool: name, wanted: '', source }
      return {
        tool: language === 'jdk' ? 'java' : language,
        wanted: nixVersion(language, digits ?? ''),
        source,
      }
    })
}

/** `311` of Python is 3.11, `82` of PHP 8.2, `1_22` of Go 1.22. */
function nixVersion(language: string, digits: string): string {
  if (/[._]/.test(digits)) return digits.replaceAll('_', '.')
  return ['python', 'php'].includes(language) && digits.length > 1
    ? `${digits[0]}.${digits.slice(1)}`
    : digits
}
