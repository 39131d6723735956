import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { sshFingerprint } from '#server/kernel/ssh-fingerprint'
import type { Client } from 'ssh2'
import { canAsk, prompt } from '../client/prompt.ts'
import { CommandError } from '../terminal.ts'

export interface Target {
  username: string
  host: string
  port: number
}
export interface SshOptions {
  /** File of a private key; the agent and the usual files are tried without it. */
  identity?: string
  /** Fingerprint that the host must show, as `ssh-keygen -lf` prints it. */
  hostKey?: string
}
interface RunOptions {
  /** What the command reads: its words can be seen by everybody there. */
  input?: string
  /** Hears its output as it comes. */
  onOutput?: (text: string) => void
}
/** One machine that commands are run on. */
export interface Remote {
  /** Runs a line of the remote shell. */
  run(command: string, options?: RunOptions): Promise<{ code: number; output: string }>
  upload(from: string, to: string): Promise<void>
  close(): void
}

const PATIENCE_MS = 20_000
const USUAL = ['id_ed25519', 'id_ecdsa', 'id_rsa']

/** `user@host` or `user@host:port`. */
export function parseTarget(text: string): Target {
  const [, username, host, port] = /^([\w.-]+)@(\[[0-9a-f:]+\]|[\w.-]+)(?::(\d{1,5}))?$/i.exec(text) ?? []
  if (!username || !host || username.startsWith('-'))
    throw new CommandError(
      `${text} names no machine. It looks like root@203.0.113.7 or admin@host.example:2222.`,
      2,
    )
  return { username, host: host.replace(/^\[|\]$/g, ''), port: Number(port ?? 22) }
}

/** A word for the remote shell, whatever is in it. */
export const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

function keyOf(identity: string | undefined): string | undefined {
  const path = identity ?? USUAL.map((name) => join(homedir(), '.ssh', name)).find((one) => existsSync(one))
  if (path === undefined) return undefined
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new CommandError(`The key ${path} cannot be read.`, 2, { cause })
  }
}

/** Nothing is sent to a host before its key is the one that was named, or somebody has said that it is right. */
async function accepts(key: Buffer, target: Target, expected: string | undefined): Promise<boolean> {
  const shown = sshFingerprint(key)
  if (expected !== undefined) {
    if (expected === shown) return true
    throw new CommandError(
      `${target.host} shows the key ${shown}, not the one that was named. Nothing was sent to it.`,
    )
  }
  if (!canAsk())
    throw new CommandError(
      `${target.host} shows the key ${shown}. Compare it with the one of the machine and name it: --host-key ${shown}`,
    )
  const answer = await prompt(`${target.host} shows the key ${shown}. Is that its key? (yes/no) `)
  if (answer.trim() === 'yes') return true
  throw new CommandError('Nothing was sent to it.')
}

const runner =
  (client: Client): Remote['run'] =>
  (command, { input = '', onOutput } = {}) =>
    new Promise((resolve, reject) => {
      client.exec(command, (error, stream) => {
        if (error) return reject(error)
        let output = ''
        const hear = (chunk: Buffer) => {
          output += chunk.toString()
          onOutput?.(chunk.toString())
        }
        stream.on('data', hear)
        stream.stderr.on('data', hear)
        stream.on('close', (code: number | null) => resolve({ code: code ?? 1, output }))
        stream.end(input)
      })
    })

const uploader =
  (client: Client): Remote['upload'] =>
  (from, to) =>
    new Promise((resolve, reject) => {
      client.sftp((error, sftp) => {
        if (error) return reject(error)
        sftp.fastPut(from, to, { mode: 0o700 }, (fault) => (fault ? reject(fault) : resolve()))
      })
    })

/** Connects with the agent or a key. */
export async function connect(target: Target, options: SshOptions): Promise<Remote> {
  const { Client: Ssh } = await import('ssh2')
  const client = new Ssh()
  const private_key = keyOf(options.identity)
  let refusal: unknown
  await new Promise<void>((resolve, reject) => {
    client.once('ready', resolve).once('error', (error) => reject(refusal ?? error))
    client.connect({
      ...target,
      readyTimeout: PATIENCE_MS * 3,
      ...(private_key === undefined ? {} : { privateKey: private_key }),
      ...(process.env.SSH_AUTH_SOCK && options.identity === undefined
        ? { agent: process.env.SSH_AUTH_SOCK }
        : {}),
      hostVerifier: (key: Buffer, verify: (is_right: boolean) => void) => {
        accepts(key, target, options.hostKey).then(verify, (error: unknown) => {
          refusal = error
          verify(false)
        })
      },
    })
  }).catch((error: unknown) => {
    client.end()
    if (error instanceof CommandError) throw error
    throw new CommandError(
      `${target.username}@${target.host} cannot be logged in to: ${(error as Error).message}.`,
      1,
      { cause: error },
    )
  })
  return { run: runner(client), upload: uploader(client), close: () => client.end() }
}
