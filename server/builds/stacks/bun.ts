import type { SourceTree } from '../plan.ts'
import { filesWithSuffix, skim } from '../tree-queries.ts'
import { chooseApp } from './node/choose-app.ts'
import { planNode } from './node/plan.ts'
import type { Stack } from './stack.ts'

/**
 * Apps that run on Bun. Apps that only install with it, like a Next.js app with a `bun.lock`, are Node apps.
 */
export const bun: Stack = {
  name: 'bun',
  help: 'A bun.lock or bunfig.toml, and a program that uses Bun itself.',
  looked_for: ['bun.lock', 'bun.lockb', 'bunfig.toml'],
  detect: runsOnBun,
  plan: (context) => planNode(context, 'bun'),
}

function runsOnBun(tree: SourceTree): boolean {
  const marked = ['bun.lock', 'bun.lockb', 'bunfig.toml'].some((file) => tree.has(file))
  if (!tree.has('package.json')) return marked || usesBun(tree)
  const { app, framework, manager } = chooseApp(tree)
  const start = app.manifest.scripts.get('start') ?? ''
  if (framework?.name === 'elysia') return true
  if (/^(?:NODE_ENV=\S+ )?bun (?!run (?:build|start)\b)/.test(start)) return true
  if (!marked && manager.name !== 'bun') return false
  if (framework !== undefined && !['hono', 'express', 'fastify', 'koa', 'socketio'].includes(framework.name))
    return false
  return !/\b(?:node|tsx|ts-node|next|vite)\b/.test(start)
}

function usesBun(tree: SourceTree): boolean {
  return filesWithSuffix(tree, ['.ts', '.js'], 1)
    .slice(0, 20)
    .some((path) => /\bBun\.serve\(|from ['"]bun['"]/.test(skim(tree, path)))
}
