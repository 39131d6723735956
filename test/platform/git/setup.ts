import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { run, type RunOptions } from '#server/kernel/process'
import { createGit, type GitOptions } from '#server/platform/git/cli'
import type { CheckoutOptions, Git, GitSource } from '#server/platform/git/git'
import { createConnectProxy } from '#server/platform/outbound/connect-proxy'
import { createOutboundPolicy, type Resolver } from '#server/platform/outbound/policy'

/** A Git of its own for one test, with everything that it starts and says on record. */
export interface Harness {
  git: Git
  base: string
  work_directory: string
  /** Every command with its options. */
  commands: { argv: readonly string[]; options: RunOptions }[]
  lines: string[]
  /** Checks out into a new folder and returns it. */
  checkout(
    source: GitSource,
    options?: { lfs?: boolean; mirror?: string; signal?: AbortSignal },
  ): Promise<string>
  /** Fails unless every command has ended and nothing but host keys is left in the work folder. */
  expectClean(): void
  close(): Promise<void>
}

export async function createHarness(
  options: { allowed?: string[]; resolver?: Resolver } & Partial<GitOptions> = {},
): Promise<Harness> {
  const base = mkdtempSync(join(tmpdir(), 'portreeve-git-bench-'))
  const { allowed = [], resolver, ...rest } = options
  const policy = createOutboundPolicy({
    allowed_private_hosts: allowed,
    ...(resolver ? { resolver } : {}),
  })
  const proxy = await createConnectProxy(policy)
  const commands: Harness['commands'] = []
  const lines: string[] = []
  let running = 0
  const work_directory = rest.work_directory ?? mkdtempSync(join(tmpdir(), 'portreeve-git-work-'))
  // Folders of mkdtemp are private; git as another user must be able to pass.
  if (!rest.work_directory) chmodSync(work_directory, 0o711)
  const git = createGit({
    policy,
    proxy,
    work_directory,
    ...rest,
    run: (argv, run_options) => {
      commands.push({ argv, options: run_options })
      running += 1
      return (rest.run ?? run)(argv, run_options).finally(() => {
        running -= 1
      })
    },
  })
  let count = 0
  return {
    git,
    base,
    work_directory,
    commands,
    lines,
    async checkout(source, { lfs = false, mirror, signal = new AbortController().signal } = {}) {
      const directory = join(base, `checkout-${(count += 1)}`)
      const how: CheckoutOptions = {
        lfs,
        onLog: (line) => lines.push(line),
        ...(mirror ? { mirror } : {}),
      }
      await git.checkout(source, directory, how, signal)
      return directory
    },
    expectClean() {
      expect(running).toBe(0)
      expect(readdirSync(base).filter((name) => !name.startsWith('checkout-'))).toEqual([])
      expect(readdirSync(work_directory).filter((name) => name !== 'known_hosts')).toEqual([])
    },
    async close() {
      await proxy.close()
      rmSync(base, { recursive: true, force: true })
      rmSync(work_directory, { recursive: true, force: true })
    },
  }
}

/** A listener on all addresses of this machine that must never be connected to. */
export async function createTrap(): Promise<{
  port: number
  connections(): number
  close(): Promise<void>
}> {
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    socket.on('error', () => {}).destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '::', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}
