import { filesIn, firstOf, skim } from '../tree-queries.ts'
import { compiledStack } from './compiled.ts'
import { nameIn } from './stack.ts'

const MOJO = /Mojolicious/

function startLine(script: string | undefined, psgi: string | undefined, mojo: boolean): string | null {
  if (mojo && script !== undefined) return `perl ${script} daemon -l http://0.0.0.0:$PORT`
  if (psgi !== undefined) return `plackup --host 0.0.0.0 --port $PORT ${psgi}`
  return script === undefined ? null : `perl ${script}`
}

/** Perl with cpanm: Mojolicious, Dancer, PSGI apps and scripts. */
export const perl = compiledStack({
  name: 'perl',
  help: 'A cpanfile, app.psgi or single Perl script.',
  looked_for: ['cpanfile', 'app.psgi'],
  detect: (tree) =>
    ['cpanfile', 'app.psgi', 'Makefile.PL'].some((path) => tree.has(path)) ||
    (filesIn(tree).some((path) => path.endsWith('.pl')) && !tree.has('package.json')),
  image: 'perl',
  versions: () => [],
  facts(tree) {
    const cpanfile = skim(tree, 'cpanfile')
    const psgi = firstOf(tree, ['app.psgi', 'bin/app.psgi'])
    const script =
      firstOf(tree, ['app.pl', 'main.pl', 'server.pl', 'script/app', 'index.pl']) ??
      filesIn(tree).find((path) => path.endsWith('.pl'))
    const by_files = psgi === undefined ? null : 'plack'
    return {
      framework: nameIn(cpanfile, { mojolicious: MOJO, dancer: /Dancer2?/ }) ?? by_files,
      package_manager: cpanfile === '' ? null : 'cpanm',
      install: cpanfile === '' ? null : 'cpanm --notest --local-lib-contained /app/local --installdeps .',
      build: null,
      start: startLine(script, psgi, MOJO.test(cpanfile)),
      port: 3000,
      source: cpanfile === '' ? (psgi ?? script ?? 'Perl files') : 'cpanfile',
      manifests: cpanfile === '' ? [] : ['cpanfile'],
      build_packages: ['build-essential', 'libssl-dev', 'zlib1g-dev'],
      runtime_env: { PERL5LIB: '/app/local/lib/perl5:/app/lib', PATH: '/app/local/bin:$PATH' },
    }
  },
})
