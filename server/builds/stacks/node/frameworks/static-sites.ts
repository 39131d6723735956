import { configText, majorOf, uses, type NodeApp } from '../manifest.ts'
import type { FrameworkPlan, NodeFramework } from './framework.ts'
import {
  antoraOutput,
  besideConfig,
  eleventyOutput,
  parcelOutput,
  polymerOutput,
  viteOutput,
  vueOutput,
} from './static-outputs.ts'

/** A generator whose facts fit on one line. */
interface Generator {
  name: string
  packages: readonly string[]
  build: string
  output: string | ((app: NodeApp) => string)
  fallback: 'spa' | 'pages'
  /** Major version of the first package below which a current Node breaks the build. */
  modern_since?: number
}

/**
 * Generators and bundlers that leave files. Those that bring another one along (Gatsby has webpack, VitePress
 * has Vite) stand first.
 */
const GENERATORS: readonly Generator[] = [
  {
    name: 'gatsby',
    packages: ['gatsby'],
    build: 'gatsby build',
    output: 'public',
    fallback: 'pages',
    modern_since: 4,
  },
  {
    name: 'react-static',
    packages: ['react-static'],
    build: 'react-static build',
    output: 'dist',
    fallback: 'pages',
    modern_since: 99,
  },
  {
    name: 'docusaurus',
    packages: ['@docusaurus/core'],
    build: 'docusaurus build',
    output: 'build',
    fallback: 'pages',
    modern_since: 2,
  },
  {
    name: 'eleventy',
    packages: ['@11ty/eleventy'],
    build: 'eleventy',
    output: eleventyOutput,
    fallback: 'pages',
  },
  {
    name: 'vitepress',
    packages: ['vitepress'],
    build: 'vitepress build',
    output: (app) => besideConfig(app, '.vitepress', 'dist'),
    fallback: 'pages',
  },
  {
    name: 'vuepress',
    packages: ['vuepress'],
    build: 'vuepress build',
    output: (app) => besideConfig(app, '.vuepress', 'dist'),
    fallback: 'pages',
    modern_since: 2,
  },
  {
    name: 'rspress',
    packages: ['rspress', '@rspress/core'],
    build: 'rspress build',
    output: 'doc_build',
    fallback: 'pages',
  },
  {
    name: 'honkit',
    packages: ['honkit'],
    build: 'honkit build',
    output: '_book',
    fallback: 'pages',
  },
  {
    name: 'antora',
    packages: ['antora', '@antora/cli'],
    build: 'antora antora-playbook.yml',
    output: antoraOutput,
    fallback: 'pages',
  },
  {
    name: 'elm-land',
    packages: ['elm-land'],
    build: 'elm-land build',
    output: 'dist',
    fallback: 'spa',
  },
  {
    name: 'saber',
    packages: ['saber'],
    build: 'saber build',
    output: 'public',
    fallback: 'pages',
    modern_since: 99,
  },
  { name: 'hexo', packages: ['hexo'], build: 'hexo generate', output: 'public', fallback: 'pages' },
  {
    name: 'gridsome',
    packages: ['gridsome'],
    build: 'gridsome build',
    output: 'dist',
    fallback: 'pages',
    modern_since: 99,
  },
  {
    name: 'observable',
    packages: ['@observablehq/framework'],
    build: 'observable build',
    output: 'dist',
    fallback: 'pages',
  },
  {
    name: 'metalsmith',
    packages: ['metalsmith'],
    build: 'node metalsmith.js',
    output: 'build',
    fallback: 'pages',
  },
  {
    name: 'create-react-app',
    packages: ['react-scripts', 'react-scripts-ts', 'react-app-rewired', '@craco/craco'],
    build: 'react-scripts build',
    output: 'build',
    fallback: 'spa',
    modern_since: 5,
  },
  {
    name: 'vue-cli',
    packages: ['@vue/cli-service'],
    build: 'vue-cli-service build',
    output: vueOutput,
    fallback: 'spa',
    modern_since: 5,
  },
  {
    name: 'quasar',
    packages: ['@quasar/app-vite', '@quasar/app-webpack', '@quasar/app'],
    build: 'quasar build',
    output: 'dist/spa',
    fallback: 'spa',
  },
  {
    name: 'ember',
    packages: ['ember-cli'],
    build: 'ember build --environment=production',
    output: 'dist',
    fallback: 'spa',
    modern_since: 4,
  },
  {
    name: 'preact',
    packages: ['preact-cli'],
    build: 'preact build',
    output: 'build',
    fallback: 'spa',
    modern_since: 4,
  },
  {
    name: 'stencil',
    packages: ['@stencil/core'],
    build: 'stencil build',
    output: 'www',
    fallback: 'spa',
  },
  {
    name: 'umi',
    packages: ['umi', '@umijs/max'],
    build: 'umi build',
    output: 'dist',
    fallback: 'spa',
  },
  {
    name: 'polymer',
    packages: ['polymer-cli'],
    build: 'polymer build',
    output: polymerOutput,
    fallback: 'spa',
    modern_since: 99,
  },
  {
    name: 'wmr',
    packages: ['wmr'],
    build: 'wmr build',
    output: 'dist',
    fallback: 'spa',
    modern_since: 99,
  },
  {
    name: 'dojo',
    packages: ['@dojo/cli'],
    build: 'dojo build --mode dist',
    output: 'output/dist',
    fallback: 'spa',
    modern_since: 99,
  },
  {
    name: 'sanity',
    packages: ['sanity', '@sanity/cli', '@sanity/base'],
    build: 'sanity build',
    output: 'dist',
    fallback: 'spa',
  },
  {
    name: 'expo',
    packages: ['expo'],
    build: 'expo export --platform web',
    output: 'dist',
    fallback: 'spa',
  },
  {
    name: 'slidev',
    packages: ['@slidev/cli'],
    build: 'slidev build',
    output: 'dist',
    fallback: 'spa',
  },
  {
    name: 'rsbuild',
    packages: ['@rsbuild/core'],
    build: 'rsbuild build',
    output: 'dist',
    fallback: 'spa',
  },
  {
    name: 'rspack',
    packages: ['@rspack/cli'],
    build: 'rspack build',
    output: 'dist',
    fallback: 'spa',
  },
  {
    name: 'farm',
    packages: ['@farmfe/core'],
    build: 'farm build',
    output: 'dist',
    fallback: 'spa',
  },
  {
    name: 'parcel',
    packages: ['parcel', 'parcel-bundler'],
    build: 'parcel build',
    output: parcelOutput,
    fallback: 'spa',
    modern_since: 2,
  },
  {
    name: 'snowpack',
    packages: ['snowpack'],
    build: 'snowpack build',
    output: 'build',
    fallback: 'spa',
  },
  {
    name: 'vike',
    packages: ['vike', 'vite-plugin-ssr'],
    build: 'vike build',
    output: 'dist/client',
    fallback: 'pages',
  },
  {
    name: 'vite',
    packages: ['vite', 'rolldown-vite', 'vite-plus'],
    build: 'vite build',
    output: viteOutput,
    fallback: 'spa',
  },
  {
    name: 'brunch',
    packages: ['brunch'],
    build: 'brunch build --production',
    output: 'public',
    fallback: 'spa',
  },
  {
    name: 'storybook',
    packages: ['storybook'],
    build: 'storybook build',
    output: 'storybook-static',
    fallback: 'pages',
  },
]

/** The table as frameworks. */
export const staticSites: readonly NodeFramework[] = GENERATORS.map((generator) => ({
  name: generator.name,
  detect: (app: NodeApp) => uses(app, ...generator.packages),
  plan: (app: NodeApp): FrameworkPlan => ({
    kind: 'static',
    build: generator.build,
    output: typeof generator.output === 'string' ? generator.output : generator.output(app),
    fallback: isMultiPage(app, generator) ? 'pages' : generator.fallback,
    node: isOld(app, generator) ? '16' : undefined,
  }),
}))

/** Vite answers with the one page unless it is told that there are several. */
function isMultiPage(app: NodeApp, { name }: Generator): boolean {
  return (
    name === 'vite' && /appType['"]?\s{0,9}:\s{0,9}['"`]mpa['"`]/.test(configText(app.tree, 'vite.config'))
  )
}

function isOld(app: NodeApp, { packages, modern_since }: Generator): boolean {
  const major = majorOf(app, packages[0]!)
  return modern_since !== undefined && major !== undefined && major < modern_since
}
