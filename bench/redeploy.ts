/**
 * A redeploy of a framework app with one changed file against its first build, both with everything between the
 * request and the app being live. `npx node bench/redeploy.ts [--rounds=2] [--only=nextjs]`
 */
import { randomBytes } from 'node:crypto'
import { createReport, median, ms, numberOptions, onlyOption } from './support/report.ts'
import { onStage } from './support/stage.ts'

const LIMIT = 0.5
const RUN = randomBytes(4).toString('hex')
const options = numberOptions({ rounds: 2 })
const report = createReport(`redeploys of framework apps with one changed file, ${options.rounds} rounds`)

type Files = Record<string, string>
/** The files of an app that shows a text; nothing else of them depends on it. */
const APPS: Record<string, (text: string) => Files> = {
  nextjs: (text) => ({
    'package.json': manifest({
      scripts: { build: 'next build', start: 'next start' },
      dependencies: { next: '15.5.9', react: '19.2.0', 'react-dom': '19.2.0' },
    }),
    'app/layout.jsx':
      'export default function Layout({ children }) { return <html><body>{children}</body></html> }\n',
    'app/page.jsx': `export default function Page() { return <h1>${text}</h1> }\n`,
  }),
  nuxt: (text) => ({
    'package.json': manifest({
      type: 'module',
      scripts: { build: 'nuxt build' },
      dependencies: { nuxt: '^4', vue: '^3' },
    }),
    'app/app.vue': `<template><h1>${text}</h1></template>\n`,
  }),
  vite: (text) => ({
    'package.json': manifest({
      type: 'module',
      scripts: { build: 'vite build' },
      dependencies: { vue: '^3' },
      devDependencies: { vite: '^6', '@vitejs/plugin-vue': '^5' },
    }),
    'index.html': '<div id="app"></div><script type="module" src="/main.js"></script>',
    'main.js': "import { createApp } from 'vue'\nimport App from './App.vue'\ncreateApp(App).mount('#app')\n",
    'App.vue': `<template><p>${text}</p></template>\n`,
    'vite.config.js': "import vue from '@vitejs/plugin-vue'\nexport default { plugins: [vue()] }\n",
  }),
}
/** Differs from run to run, so that no build finds the layers of an earlier one. */
function manifest(fields: Record<string, unknown>): string {
  return JSON.stringify({ name: `bench-${RUN}`, private: true, version: '1.0.0', ...fields })
}

await onStage(async ({ portreeve, forge }) => {
  const only = onlyOption()
  for (const [name, filesOf] of Object.entries(APPS).filter(([one]) => one.includes(only))) {
    const [firsts, changes, builds]: [number[], number[], number[][]] = [[], [], []]
    for (let round = 1; round <= options.rounds; round += 1) {
      const app = `${name}-${round}`
      const repository = forge.repository(app)
      // Each round is an app of its own, with packages of its own.
      const files = (text: string) => ({
        ...filesOf(text),
        '.npmrc': `# ${app}\n`,
      })
      repository.commit(files('one'), 'one')
      const created = await portreeve.call('POST', '/api/apps', {
        name: app,
        git_url: repository.url,
        branch: 'main',
        soak_seconds: 0,
      })
      const { id } = created.body.data
      const first = await settled(id)
      repository.commit(files('two'), 'two')
      await portreeve.call('POST', `/api/apps/${id}/deploy`, {})
      const second = await settled(id)
      firsts.push(liveAfter(first))
      changes.push(liveAfter(second))
      builds.push([buildOf(first), buildOf(second)])
      await portreeve.call('DELETE', `/api/apps/${id}`)
    }
    const [before, after] = [median(firsts), median(changes)]
    report.figure(`${name}: first / one file changed`, `${ms(before)} / ${ms(after)}`)
    report.figure(
      `  the build step alone, by round`,
      builds.map(([one, two]) => `${ms(one!)} / ${ms(two!)}`).join(', '),
    )
    report.check(`${name}: ratio at most ${LIMIT}`, after / before <= LIMIT, (after / before).toFixed(2))
  }

  async function settled(id: string): Promise<any> {
    const app = (await portreeve.call('GET', `/api/apps/${id}`)).body.data
    const ended = await portreeve.untilDeployment(app.latest_deployment.id)
    if (ended.status !== 'live') throw new Error(JSON.stringify(ended.error))
    return ended
  }
})

/** Milliseconds from the request until requests reached the new release. */
function liveAfter({ created_at, live_at }: { created_at: string; live_at: string }): number {
  return Date.parse(live_at) - Date.parse(created_at)
}
function buildOf({ steps }: { steps: { name: string; duration_ms: number }[] }): number {
  return steps.find(({ name }) => name === 'build')!.duration_ms
}
report.end()
