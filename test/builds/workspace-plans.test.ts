import { describe, expect, it } from 'vitest'
import { detect } from '#server/builds/detect'
import { outsidePackages } from '#server/builds/outside-packages'
import { memoryTree } from '#server/builds/source-tree'

type Files = Record<string, string>
const plan = (files: Files, overrides = {}) => detect(memoryTree(files), overrides)
const PACKAGED = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'

describe('a workspace of uv', () => {
  const files = {
    'uv.lock': '',
    'pyproject.toml': '[project]\nname = "suite"\n[tool.uv.workspace]\nmembers = ["services/*", "libs/*"]\n',
    'services/web/pyproject.toml': `[project]\nname = "web"\ndependencies = ["fastapi", "pdfs"]\n${PACKAGED}`,
    'services/web/src/web/__init__.py': '',
    'services/web/src/web/main.py': 'import pdfs\nfrom fastapi import FastAPI\napp = FastAPI()\n',
    'libs/pdfs/pyproject.toml': `[project]\nname = "pdfs"\ndependencies = ["cairosvg"]\n${PACKAGED}`,
    'libs/pdfs/src/pdfs/__init__.py': '',
  }
  const members = 'uv sync --frozen --no-dev --all-packages --no-install-project --inexact'
  it('has its members installed once their source is there, for the one that imports another', () => {
    const { dockerfile } = plan(files)
    const [copied, installed] = [dockerfile.indexOf('COPY . ./'), dockerfile.indexOf(members)]
    expect(copied).toBeGreaterThan(0)
    expect(installed).toBeGreaterThan(copied)
  })
  it('is left to an install command of its own, and one project has no members', () => {
    expect(plan(files, { install_command: 'make packages' }).dockerfile).not.toContain(members)
    const single = { 'uv.lock': '', 'pyproject.toml': files['libs/pdfs/pyproject.toml'], 'main.py': '' }
    expect(plan(single).dockerfile).not.toContain('--inexact')
  })
})

describe('a repository of several programs in Go', () => {
  const main = 'package main\n\nfunc main() {}\n'
  const files = {
    'go.mod': 'module example.com/fleet\n\ngo 1.23\n',
    'cmd/server/main.go': main,
    'cmd/edge/main.go': main,
    'cmd/mailer/main.go': main,
    'cmd/migrate/main.go': main,
    'cmd/unused/main.go': main,
  }
  const go = (name: string, output = name) =>
    `go build -trimpath -ldflags=-s -o /app/bin/${output} ./cmd/${name}`
  it('builds those that processes, the release and cron jobs start', () => {
    const found = plan({
      ...files,
      Procfile: 'web: bin/server\nworker: ./bin/mailer --queue all\nrelease: /app/bin/migrate up\n',
      'portreeve.json': JSON.stringify({ cron_jobs: [{ schedule: '0 3 * * *', command: 'bin/edge sweep' }] }),
    })
    expect(found.build_command!.split(' && ').sort()).toEqual(
      [go('edge'), go('mailer'), go('migrate'), go('server', 'app')].sort(),
    )
    expect(plan(files).build_command).toBe(go('server', 'app'))
  })
  it('has as its main one what the start command names', () => {
    const found = plan({ ...files, Procfile: 'web: bin/edge -v\n' })
    expect(found.build_command).toBe(go('edge', 'app'))
    expect(found.dockerfile).toContain('ln -s app bin/edge')
  })
})

describe('packages outside of a base directory', () => {
  const files = {
    'package.json': '{"workspaces":["services/*","shared"]}',
    'shared/package.json': '{"name":"@shop/shared"}',
    'services/api/package.json':
      '{"name":"@shop/api","dependencies":{"@shop/shared":"*","express":"5"},"devDependencies":{"@shop/web":"*"}}',
    'services/web/package.json': '{"name":"@shop/web"}',
  }
  const outside = (more: Files = {}, folder = 'services/api') =>
    outsidePackages(memoryTree({ ...files, ...more }), folder)
  it('are those of the workspace that the app runs with', () => {
    expect(outside()).toEqual(['@shop/shared'])
    expect(outside({}, 'services/web')).toEqual([])
    const pnpm = { 'package.json': '{}', 'pnpm-workspace.yaml': 'packages: [shared]\n' }
    expect(outside(pnpm)).toEqual(['@shop/shared'])
  })
  it('are none where the folder has a lockfile of its own, or the package lies in it', () => {
    expect(outside({ 'services/api/package-lock.json': '{}' })).toEqual([])
    expect(outside({}, 'services')).toEqual([])
  })
})
