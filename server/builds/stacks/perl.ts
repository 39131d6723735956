import { filesIn, firstOf, skim } from '../tree-queries.ts'
import { compiledStack } from './compiled.ts'

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
    const mojo = /Mojolicious/.test(cpanfile)
    const psgi = firstOf(tree, ['app.psgi', 'bin/app.psgi'])
    const script =
      firstOf(tree, ['app.pl', 'main.pl', 'server.pl', 'script/app', 'index.pl']) ??
      filesIn(tree).find((path) => path.endsWith('.pl'))
    const start =
      mojo && script !== undefined
        ? `perl ${script} daemon -l http://0.0.0.0:$PORT`
        : psgi !== undefined
          ? `plackup --host 0.0.0.0 --port $PORT ${psgi}`
          : script === undefined
            ? null
            : `perl ${script}`
    return {
      framework: mojo
        ? 'mojolicious'
        : /Dancer2?/.test(cpanfile)
          ? 'dancer'
          : psgi !== undefined
            ? 'plack'
            : null,
      package_manager: cpanfile === '' ? null : 'cpanm',
      install: cpanfile === '' ? null : 'cpanm --notest --local-lib-contained /app/local --installdeps .',
      build: null,
      start,
      port: 3000,
      source: cpanfile === '' ? (psgi ?? script ?? 'Perl files') : 'cpanfile',
      manifests: cpanfile === '' ? [] : ['cpanfile'],
      build_packages: ['build-essential', 'libssl-dev', 'zlib1g-dev'],
      runtime_env: { PERL5LIB: '/app/local/lib/perl5:/app/lib', PATH: '/app/local/bin:$PATH' },
    }
  },
})
