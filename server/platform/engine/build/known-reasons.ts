/** A reason that common tools tell in words of their own, with the way out. */
interface Reason {
  says: RegExp
  /** What to do; `{1}` and `{2}` stand for what the expression found. */
  hint: string
}

/** The usual words for a host that cannot be looked up. */
const UNREACHABLE =
  /(?:getaddrinfo (?:ENOTFOUND|EAI_AGAIN)|Could not (?:resolve|reach) host:?|Failed to (?:lookup|resolve) (?:host|address)\b:?|dial tcp: lookup|Name or service not known|Temporary failure in name resolution|Failed to resolve '|Hostname not found:)[ ]?['"]?([\w.-]{2,99}\w)?/

/** Reasons of package managers: what is asked for is not to be had. */
const PACKAGES: readonly Reason[] = [
  {
    says: /npm ci.*can only install packages when your package\.json and package-lock\.json.*are in sync|Missing: \S+ from lock file/,
    hint: 'package-lock.json does not fit package.json: run `npm install`, and commit package-lock.json.',
  },
  {
    says: /ERR_PNPM_OUTDATED_LOCKFILE/,
    hint: 'pnpm-lock.yaml does not fit package.json: run `pnpm install`, and commit pnpm-lock.yaml.',
  },
  {
    says: /ERR_PNPM_LOCKFILE_BREAKING_CHANGE|Ignoring not compatible lockfile/,
    hint: 'pnpm-lock.yaml was written by another generation of pnpm: name the version that is used in packageManager of package.json.',
  },
  {
    says: /YN0028|Your lockfile needs to be updated|lockfile would have been modified by this install/,
    hint: 'yarn.lock does not fit package.json: run `yarn install`, and commit yarn.lock.',
  },
  {
    says: /lockfile had changes, but lockfile is frozen/,
    hint: 'bun.lock does not fit package.json: run `bun install`, and commit bun.lock.',
  },
  {
    says: /npm (?:error|ERR!) (?:404 +)?(?:The requested resource )?'((?:@[\w.-]{1,80}\/)?[\w.-]{1,100})@[^']{0,80}' (?:is not in (?:this|the npm) registry|could not be found)|Couldn't find package "((?:@[\w.-]{1,80}\/)?[\w.-]{1,100})"|ERR_PNPM_FETCH_404.*?\/((?:@|%40)?[\w.%@/-]{1,100}): Not Found|GET \S+?\/((?:@[\w.-]{1,80}(?:\/|%2f))?[\w.-]{1,100}) - 404/i,
    hint: 'The package `{1}` is not in the registry: correct its name, or set up the login of its own registry in .npmrc with a secret variable of builds.',
  },
  {
    says: /No matching version found for ((?:@[\w.-]{1,80}\/)?[\w.-]{1,100})@|Couldn't find any versions for "((?:@[\w.-]{1,80}\/)?[\w.-]{1,100})"|No version matching \S+ found for specifier "((?:@[\w.-]{1,80}\/)?[\w.-]{1,100})"/,
    hint: 'No version of `{1}` is the one that is asked for: correct its range in package.json.',
  },
  {
    says: /(?:npm (?:error|ERR!) (?:code )?ERESOLVE|ERR_PNPM_PEER_DEP_ISSUES)/,
    hint: 'Packages exclude one another by their peer dependencies: correct their versions, or commit an .npmrc with `legacy-peer-deps=true`.',
  },
  {
    says: /npm (?:error|ERR!) code EBADENGINE|The engine "(?:node|npm)" is incompatible with this module|ERR_PNPM_UNSUPPORTED_ENGINE/,
    hint: 'A package wants another version of Node: set engines.node in package.json, or commit an .nvmrc.',
  },
  {
    says: /Unsupported URL Type "workspace:"|EUNSUPPORTEDPROTOCOL.*workspace:/,
    hint: 'Ranges with `workspace:` are understood by pnpm, Yarn and Bun, not by npm: name the package manager in packageManager of package.json, or commit its lockfile.',
  },
  {
    says: /npm (?:error|ERR!) Missing script: "([\w:.-]{1,80})"|ERR_PNPM_NO_SCRIPT.*?Missing script: ([\w:.-]{1,80})|error Command "([\w:.-]{1,80})" not found|Script not found "([\w:.-]{1,80})"|Couldn't find a script named "([\w:.-]{1,80})"/,
    hint: 'package.json has no script `{1}`: add it, or correct the command.',
  },
  {
    says: /Cannot find module '?@?[\w/.-]{0,60}(?:rollup-|esbuild\/|swc|lightningcss|oxide|rolldown|binding)[\w/.-]{0,40}linux-(?:x64|arm64)/,
    hint: 'The lockfile was written on another system and leaves out what this one needs: remove node_modules and the lockfile, install again, and commit it.',
  },
  {
    says: /spawn git ENOENT|git: (?:command )?not found|executable file not found in \$PATH: git/,
    hint: 'A dependency comes from a Git repository, and git is not in the image: add an Aptfile with the line `git`.',
  },
  {
    says: /No matching distribution found for ([\w.[\]-]{1,100})/,
    hint: 'No version of the package `{1}` fits: correct its name, its version, or the version of Python.',
  },
  {
    says: /no required module provides package ([\w./@-]{1,150})/,
    hint: 'The module of `{1}` is not in go.mod: run `go mod tidy`, and commit go.mod and go.sum.',
  },
  {
    says: /missing go\.sum entry|updates to go\.mod needed|go: inconsistent vendoring/,
    hint: 'go.sum does not fit go.mod: run `go mod tidy`, and commit both.',
  },
  {
    says: /go\.mod requires go >= ([\d.]{1,12})|module requires Go ([\d.]{1,12})/,
    hint: 'The module wants Go {1}: name this version in a `go` line of go.mod, or in .tool-versions.',
  },
  {
    says: /Your Ruby version is [\d.p]{1,12}, but your Gemfile specified ([~><=\d. ]{1,20}\d)/,
    hint: 'The Gemfile wants Ruby {1}: commit a .ruby-version with a version that it takes.',
  },
  {
    says: /requires? (?:PHP extension )?(ext-\w{1,40}) (?:\* )?(?:->|but|is missing)/,
    hint: 'The extension {1} of PHP is missing: name it under `require` in composer.json.',
  },
  {
    says: /(?:release version|invalid target release:|source release) (\d{1,2})(?:\.\d)? ?(?:not supported|requires|$)|Unsupported class file major version/,
    hint: 'The project wants another version of Java: set java.version in pom.xml, the toolchain of Gradle, or system.properties.',
  },
  {
    says: /requires rustc (\d[\d.]{1,10}) or newer/,
    hint: 'A crate wants Rust {1}: name it in rust-toolchain.toml.',
  },
]

/** Reasons of compilers and bundlers. */
const SOURCES: readonly Reason[] = [
  {
    says: /(?:Could not resolve|Can't resolve|Cannot find module|Failed to resolve import|Unable to resolve path to module) ['"`](\.{1,2}\/[^'"`\n]{1,120}|@\/[^'"`\n]{1,120}|~\/[^'"`\n]{1,120})['"`]/,
    hint: 'The file `{1}` is not in the repository by this name: capital letters count here, and what .gitignore names is not there.',
  },
  {
    says: /Cannot find (?:module|package) '((?:@[\w.-]{1,80}\/)?[\w][\w.-]{0,100})(?:\/[^']{0,100})?'|(?:Can't resolve|Could not resolve|failed to resolve import|Failed to resolve import) ['"]((?:@[\w.-]{1,80}\/)?\w[\w.-]{0,100})(?:\/[^'"]{0,100})?['"]/,
    hint: 'The package `{1}` is not installed: add it to the dependencies of package.json, and commit the lockfile.',
  },
  {
    says: /ModuleNotFoundError: No module named '([\w.]{1,100})'/,
    hint: 'The module `{1}` of Python is not installed: add the package that brings it to the requirements.',
  },
  {
    says: /(?:in `require'|cannot load such file) -- ([\w/.-]{1,100})/,
    hint: 'The file or gem `{1}` is not there: add the gem to the Gemfile, outside of the groups development and test.',
  },
  {
    says: /fatal error: '?([\w./+-]{1,80}\.h(?:pp)?)'?(?::| file) (?:No such file|not found)/,
    hint: 'The header `{1}` is missing: name the package of Debian that brings it in an Aptfile.',
  },
  {
    says: /Error: (\w{1,30}[_-]config) (?:executable )?not found|Package '?([\w.+-]{1,60})'?,? (?:required by|was not found)|No package '([\w.+-]{1,60})' found/,
    hint: 'The library of `{1}` is missing: name the package of Debian that brings its development files in an Aptfile.',
  },
  {
    says: /^([\w@][\w@./-]{0,150}\.[cm]?tsx?(?:\(\d+,\d+\)|:\d+:\d+))(?::| -) error TS\d+/,
    hint: 'TypeScript refuses `{1}`: correct the source, or let the build not check types.',
  },
  {
    says: /ERR_OSSL_EVP_UNSUPPORTED|digital envelope routines::unsupported/,
    hint: 'The build tool needs an older Node: set engines.node to 16 in package.json, or NODE_OPTIONS=--openssl-legacy-provider for builds.',
  },
  {
    says: /JavaScript heap out of memory/,
    hint: 'The heap of Node is full: set NODE_OPTIONS=--max-old-space-size=<MiB>, or let it use less.',
  },
]

/** Reasons that do not depend on a language. */
const SURROUNDINGS: readonly Reason[] = [
  {
    says: /\$'\\r': command not found|invalid [\w ]{1,30}'[^'\n]{0,60}\\r'|bad interpreter: \S{0,60}\^M|(?:env|sh): [‘'"]?[\w./-]{1,40}\\r['’"]?: No such file/,
    hint: 'A script has the line ends of Windows: save it with those of Unix, and commit a .gitattributes with `*.sh text eol=lf`.',
  },
  {
    says: /(?:sh|bash|line \d{1,5}|\d{1,5}): (?:exec: )?(\.?\/?[\w./-]{1,100}): Permission denied/,
    hint: 'The file `{1}` may not be run: `git update-index --chmod=+x`, and commit it.',
  },
  {
    says: /\b([A-Z][A-Z0-9]*_[A-Z0-9_]{1,60}|PORT|SECRET)\b['"`]?[^\n]{0,40}?\b(?:(?:is|was) (?:not (?:set|provided|configured)(?![^\n]{0,40}\b(?:using|default))|missing|required|undefined)|(?:must|should|has to) be (?:set|defined|provided)|not found in env\w*)|(?:[Mm]issing|[Rr]equired|[Uu]ndefined|[Uu]nset) (?:required )?(?:env(?:ironment)?[ -]?(?:variable|var)s?)?[:=]? ?['"`]?([A-Z][A-Z0-9]*_[A-Z0-9_]{1,60})\b/,
    hint: 'Set the variable {1} in the app.',
  },
  {
    says: /(?:[Mm]issing|[Ii]nvalid|[Rr]equired) environment variables?/,
    hint: 'Set the variables that the lines in the log name in the app.',
  },
]

/**
 * What to do about the failure that these lines tell of, when it is one of those that are known. Lines of the
 * failing command alone, so that a word of another one is no reason.
 */
export function knownReason(lines: readonly string[], during: 'build' | 'run'): string | undefined {
  const kept = lines.map((line) => line.slice(0, 2000))
  const unreachable = kept.map((line) => UNREACHABLE.exec(line)).find((found) => found !== null)
  if (unreachable !== undefined && unreachable !== null) {
    const host = unreachable[1] === undefined ? 'A host' : `The host ${unreachable[1]}`
    const way_out =
      during === 'run'
        ? 'correct its address in the variables of the app, or link the database that is meant.'
        : 'in a closed network, name a mirror in the settings of the package manager.'
    return `${host} could not be found: ${way_out}`
  }
  for (const { says, hint } of [...PACKAGES, ...SOURCES, ...SURROUNDINGS]) {
    const found = kept.map((line) => says.exec(line)).find((one) => one !== null)
    if (found) return hint.replace('{1}', firstFound(found))
  }
  return undefined
}

/** What an expression with a group for each tool has found. */
function firstFound(found: RegExpExecArray): string {
  const text = found.slice(1).find((one) => one !== undefined) ?? ''
  return text.replace(/%40/gi, '@').replace(/%2f/gi, '/').replaceAll('`', "'")
}
