import type { Stack } from './stack.ts'
import { hasManifest } from './node/manifest.ts'
import { planNode } from './node/plan.ts'

/**
 * Everything with a package.json that no other stack claims: servers, and front ends that become static
 * sites.
 */
export const node: Stack = {
  name: 'node',
  help: 'A package.json in the root.',
  looked_for: ['package.json'],
  detect: (tree) => hasManifest(tree),
  plan: (context) => planNode(context, 'node'),
}
