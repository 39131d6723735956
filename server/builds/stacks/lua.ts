import type { SourceTree } from '../plan.ts'
import { filesIn, firstOf, skim } from '../tree-queries.ts'
import { compiledStack } from './compiled.ts'

const TREE = '/app/lua_modules'

/** Lua with LuaRocks: scripts that open a port themselves. */
export const lua = compiledStack({
  name: 'lua',
  help: 'A .rockspec file or a main.lua.',
  looked_for: ['*.rockspec', 'main.lua'],
  detect: (tree) =>
    rockspec(tree) !== undefined ||
    (mainFile(tree) !== undefined && !tree.has('package.json') && !tree.has('conf.lua')),
  image: 'debian',
  versions: () => [],
  facts(tree) {
    const manifest = rockspec(tree)
    const main = mainFile(tree)
    const text = `${skim(tree, manifest)}\n${skim(tree, main)}`
    return {
      framework:
        ['lapis', 'pegasus', 'sailor', 'http', 'turbo'].find((name) =>
          new RegExp(`['"]${name}\\b`).test(text),
        ) ?? null,
      package_manager: manifest === undefined ? null : 'luarocks',
      install:
        manifest === undefined
          ? null
          : `luarocks --lua-version 5.4 --tree ${TREE} install --only-deps ${manifest}`,
      build: null,
      start: main === undefined ? null : `lua5.4 ${main}`,
      port: 8080,
      source: manifest ?? main ?? 'Lua files',
      manifests: manifest === undefined ? [] : [manifest],
      build_packages: [
        'lua5.4',
        'liblua5.4-dev',
        'luarocks',
        'build-essential',
        'git',
        'ca-certificates',
        'unzip',
        'm4',
        'libssl-dev',
      ],
      runtime_packages: [
        'lua5.4',
        'ca-certificates',
        'libssl3',
        ...(manifest === undefined ? ['lua-socket', 'lua-cjson', 'lua-filesystem'] : []),
      ],
      runtime_env:
        manifest === undefined
          ? undefined
          : {
              LUA_PATH: `${TREE}/share/lua/5.4/?.lua;${TREE}/share/lua/5.4/?/init.lua;./?.lua;./?/init.lua;;`,
              LUA_CPATH: `${TREE}/lib/lua/5.4/?.so;;`,
            },
    }
  },
})

const rockspec = (tree: SourceTree) => filesIn(tree).find((path) => /^[\w.-]+\.rockspec$/.test(path))
const mainFile = (tree: SourceTree) =>
  firstOf(tree, [
    'main.lua',
    'server.lua',
    'app.lua',
    'src/main.lua',
    'src/server.lua',
    'src/app.lua',
    'init.lua',
  ])
