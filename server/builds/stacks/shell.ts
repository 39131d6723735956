import { baseImage } from '../base-images.ts'
import type { SourceTree } from '../plan.ts'
import { interpreterOf, unknownInterpreter } from '../interpreters.ts'
import { toolRequests } from '../tool-requests.ts'
import { firstOf } from '../tree-queries.ts'
import { procfile } from '../repository-settings.ts'
import { TCP, because, type Commands, type Stack, type StackProposal } from './stack.ts'

const SCRIPTS = ['start.sh', 'run.sh', 'entrypoint.sh', 'server.sh', 'app.sh', 'main.sh']
const PORT = 8080

function scriptPlan(stack: string, start: string | null, source: string): StackProposal {
  return {
    stack,
    framework: null,
    version: null,
    package_manager: null,
    install_command: null,
    build_command: null,
    start_command: start,
    release_command: null,
    port: PORT,
    health_check: TCP,
    explanation: [
      ...because('stack', stack, source),
      ...because('start_command', start, source),
      ...because('port', String(PORT), 'default, set as PORT'),
    ],
    layout: (commands: Commands) => ({
      build_image: baseImage('debian'),
      runtime_image: baseImage('debian'),
      runtime_packages: ['bash', 'ca-certificates', 'curl'],
      manifests: [],
      install: commands.install,
      build: commands.build,
      start: commands.start,
      port: commands.port,
    }),
  }
}

/** A script that starts everything. */
export const shell: Stack = {
  name: 'shell',
  help: 'A start.sh.',
  looked_for: ['start.sh'],
  detect: (tree) => scriptOf(tree) !== undefined,
  plan({ tree }) {
    const script = scriptOf(tree) ?? 'start.sh'
    const plan = scriptPlan('shell', interpreterLine(tree, script), script)
    const program = unknownInterpreter(tree, script)
    if (program === undefined || toolRequests(tree).some(({ tool }) => tool === program)) return plan
    const value = `${program} is not installed: the first line of ${script} names it, and nothing here brings it. Use a Dockerfile.`
    return { ...plan, explanation: [...plan.explanation, ...because('warning', value, script)] }
  },
}

/** A Procfile, or another file that names a start command, without a language: programs that are in the repository, on plain Debian. */
export const procfileOnly: Stack = {
  name: 'procfile',
  help: 'A Procfile with a web process.',
  looked_for: ['Procfile'],
  detect: (tree) => procfile(tree).size > 0,
  plan: ({ tree, declared }) =>
    scriptPlan(
      'procfile',
      declared.start_command?.value ?? [...procfile(tree)].find(([name]) => name !== 'release')?.[1] ?? null,
      declared.start_command?.source ?? 'Procfile',
    ),
}

function scriptOf(tree: SourceTree): string | undefined {
  return firstOf(tree, SCRIPTS)
}

/** Started through its interpreter: the file may have lost its executable bit on the way through git. */
function interpreterLine(tree: SourceTree, script: string): string {
  const { program, options } = interpreterOf(tree, script) ?? { program: 'bash', options: '' }
  return `${program}${options} ${script}`
}
