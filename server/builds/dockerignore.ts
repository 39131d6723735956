/** What never belongs into a build context: history, installed packages, local settings and keys. */
const LINES = [
  '.git', '.hg', '.svn', '**/node_modules', '**/.venv', '**/__pycache__', '**/*.pyc', '**/.DS_Store', '**/.idea', '**/.vscode', '**/.vagrant', '**/.terraform',
  '**/.next', '**/.nuxt', '**/.svelte-kit', '**/.turbo', '**/.parcel-cache', '**/.gradle', '**/_build', '**/.elixir_ls', '**/.stack-work', '**/.dart_tool', '**/.zig-cache',
  // Secrets. Templates stay, and so does `.env.production`, in which front-end builds keep their public values by convention.
  '**/.env', '**/.env.*', '!**/.env.production', '!**/.env.example', '!**/.env.sample', '!**/.env.template', '!**/.env.dist', '!**/.env.defaults',
  '**/*.pem', '**/*.key', '**/*.p12', '**/*.pfx', '**/*.jks', '**/id_rsa', '**/id_ed25519', '**/id_ecdsa', '**/.npmrc.local', '**/.aws', '**/.ssh',
  '**/config/master.key', '**/*.log', '.dockerignore',
]

/** Text of the `.dockerignore` that a repository gets when it has none. */
export function defaultDockerignore(): string {
  return `${LINES.join('\n')}\n`
}
