import { own } from '#server/kernel/own'
import { resolve } from 'node:path'
import { dnsName } from './dns-names.ts'
import { isNetwork } from './networks.ts'

/** Everything that the environment can set, checked once at the start. */
export interface Config {
  /** Address that the API listens on. `HOST`, default `0.0.0.0`. */
  host: string
  /** Whether somebody chose that address: then the API stays there. */
  host_is_chosen: boolean
  /** TCP port of the API. `PORT`, default 9000. */
  port: number
  /** Absolute path of the runtime state. `PORTREEVE_DATA_DIR`, default `.data`. */
  data_directory: string
  /** E-mail of the first administrator. `PORTREEVE_ADMIN_EMAIL`, default `admin@localhost`. */
  admin_email: string
  /** Password of the first administrator; generated when absent. `PORTREEVE_ADMIN_PASSWORD`. */
  admin_password?: string
  /** Master key for secrets instead of the key file, at least 32 characters. `PORTREEVE_SECRET_KEY`. */
  secret_key?: string
  /** Domain below which apps get their names. `PORTREEVE_BASE_DOMAIN`. */
  base_domain?: string
  /** Where users reach the dashboard and the API. `PORTREEVE_PUBLIC_URL`. */
  public_url?: string
  /** Port of the edge for HTTP. `PORTREEVE_HTTP_PORT`, default 80. */
  http_port: number
  /** Port of the edge for HTTPS. `PORTREEVE_HTTPS_PORT`, default 443. */
  https_port: number
  /**
   * Hosts on private addresses that outbound requests may reach: `host`, `host:port`.
   * `PORTREEVE_ALLOWED_PRIVATE_HOSTS`, comma separated.
   */
  allowed_private_hosts: string[]
  /**
   * Addresses or networks of proxies whose forwarding headers are believed. `PORTREEVE_TRUSTED_PROXIES`,
   * comma separated.
   */
  trusted_proxies: string[]
  /**
   * Address of the engine, as the Docker CLI understands it. `DOCKER_HOST`, default
   * `unix:///var/run/docker.sock`.
   */
  docker_host: string
  /** Authorities that TLS connections of git trust, a PEM file. `SSL_CERT_FILE`, default the system's. */
  ca_file?: string
  /** `PORTREEVE_LOG_FORMAT`: `text` (default) or `json`. */
  log_format: 'text' | 'json'
  /** `PORTREEVE_LOG_LEVEL`: `error`, `warn`, `info` (default) or `debug`. */
  log_level: 'error' | 'warn' | 'info' | 'debug'
  /** Builds that run at the same time on this installation. `PORTREEVE_BUILD_CONCURRENCY`, default 1. */
  build_concurrency: number
  /**
   * Bytes that one instance of an app may write into its container, beside volumes.
   * `PORTREEVE_LAYER_LIMIT_MIB`, default 10240.
   */
  layer_bytes: number
  /**
   * For fault experiments only: `<job kind>.<step>:before|after` kills the process there.
   * `PORTREEVE_CRASH_AT`.
   */
  crash_at?: string
}

/** A wrong environment variable. The message names it and says what it must be; the server does not start. */
export class ConfigError extends Error {}

type Environment = Record<string, string | undefined>

function text(env: Environment, name: string): string | undefined {
  const value = own(env, name)?.trim()
  return value === '' ? undefined : value
}

function integer(env: Environment, name: string, fallback: number, min: number, max: number): number {
  const value = text(env, name)
  if (value === undefined) return fallback
  const number = /^\d+$/.test(value) ? Number(value) : Number.NaN
  if (!(number >= min && number <= max))
    throw new ConfigError(`${name} must be a whole number from ${min} to ${max}.`)
  return number
}

function choice<T extends string>(env: Environment, name: string, choices: readonly T[], fallback: T): T {
  const value = text(env, name)
  if (value === undefined) return fallback
  if (!choices.includes(value as T)) throw new ConfigError(`${name} must be one of ${choices.join(', ')}.`)
  return value as T
}

function list(env: Environment, name: string, valid: (item: string) => boolean, what: string): string[] {
  const items = (text(env, name) ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)
  for (const item of items)
    if (!valid(item))
      throw new ConfigError(`${name} must be a comma separated list of ${what}; one of its items is not.`)
  return items
}

/** Who the first administrator is, unless the operator says. */
export const DEFAULT_ADMIN_EMAIL = 'admin@localhost'
const HOSTNAME = dnsName()
const isHost = (item: string): boolean =>
  isNetwork(item) ||
  /^\[[0-9a-f:.]+\](:\d{1,5})?$/i.test(item) ||
  HOSTNAME.test(
    item
      .toLowerCase()
      .replace(/:\d{1,5}$/, '')
      .replace(/^\*\./, ''),
  )

function hostname(env: Environment, name: string): string | undefined {
  const value = text(env, name)?.toLowerCase().replace(/\.$/, '')
  if (value !== undefined && !HOSTNAME.test(value))
    throw new ConfigError(`${name} must be a host name such as apps.example.com, without scheme or port.`)
  return value
}

function url(env: Environment, name: string): string | undefined {
  const value = text(env, name)
  if (value === undefined) return undefined
  const parsed = URL.canParse(value) ? new URL(value) : undefined
  if (
    !parsed ||
    !['http:', 'https:'].includes(parsed.protocol) ||
    parsed.username ||
    parsed.search ||
    parsed.hash
  ) {
    throw new ConfigError(`${name} must be an http or https address such as https://portreeve.example.com.`)
  }
  return value.replace(/\/+$/, '')
}

function checked(
  env: Environment,
  name: string,
  valid: (value: string) => boolean,
  sentence: string,
): string | undefined {
  const value = text(env, name)
  if (value !== undefined && !valid(value)) throw new ConfigError(`${name} ${sentence}`)
  return value
}

/** Reads and checks the environment. Throws ConfigError with one sentence for the first wrong variable. */
export function loadConfig(env: Environment): Config {
  const config: Config = {
    host: text(env, 'HOST') ?? '0.0.0.0',
    host_is_chosen: text(env, 'HOST') !== undefined,
    port: integer(env, 'PORT', 9000, 0, 65535),
    data_directory: resolve(text(env, 'PORTREEVE_DATA_DIR') ?? '.data'),
    admin_email:
      checked(
        env,
        'PORTREEVE_ADMIN_EMAIL',
        (v) => /^[^\s@]+@[^\s@]+$/.test(v),
        'must be an e-mail address.',
      ) ?? DEFAULT_ADMIN_EMAIL,
    admin_password: checked(
      env,
      'PORTREEVE_ADMIN_PASSWORD',
      (v) => v.length >= 10 && v.length <= 256,
      'must have 10 to 256 characters.',
    ),
    secret_key: checked(
      env,
      'PORTREEVE_SECRET_KEY',
      (v) => v.length >= 32,
      'must have at least 32 characters; generate one with: openssl rand -base64 32',
    ),
    base_domain: hostname(env, 'PORTREEVE_BASE_DOMAIN'),
    public_url: url(env, 'PORTREEVE_PUBLIC_URL'),
    http_port: integer(env, 'PORTREEVE_HTTP_PORT', 80, 1, 65535),
    https_port: integer(env, 'PORTREEVE_HTTPS_PORT', 443, 1, 65535),
    allowed_private_hosts: list(
      env,
      'PORTREEVE_ALLOWED_PRIVATE_HOSTS',
      isHost,
      'hosts (host, host:port or network)',
    ),
    trusted_proxies: list(
      env,
      'PORTREEVE_TRUSTED_PROXIES',
      isNetwork,
      'addresses or networks such as 10.0.0.0/8',
    ),
    docker_host:
      checked(
        env,
        'DOCKER_HOST',
        (v) => /^(unix:\/\/\/|tcp:\/\/)/.test(v),
        'must start with unix:/// or tcp://.',
      ) ?? 'unix:///var/run/docker.sock',
    ca_file: text(env, 'SSL_CERT_FILE'),
    log_format: choice(env, 'PORTREEVE_LOG_FORMAT', ['text', 'json'] as const, 'text'),
    log_level: choice(env, 'PORTREEVE_LOG_LEVEL', ['error', 'warn', 'info', 'debug'] as const, 'info'),
    build_concurrency: integer(env, 'PORTREEVE_BUILD_CONCURRENCY', 1, 1, 64),
    layer_bytes: integer(env, 'PORTREEVE_LAYER_LIMIT_MIB', 10_240, 16, 1024 ** 2) * 1024 ** 2,
    crash_at: checked(
      env,
      'PORTREEVE_CRASH_AT',
      (v) => /^[a-z_.]+:(before|after)$/.test(v),
      'must look like deploy.build:before.',
    ),
  }
  if (config.http_port === config.https_port)
    throw new ConfigError('PORTREEVE_HTTP_PORT and PORTREEVE_HTTPS_PORT must differ.')
  if ([config.http_port, config.https_port].includes(config.port))
    throw new ConfigError('PORT must differ from PORTREEVE_HTTP_PORT and PORTREEVE_HTTPS_PORT.')
  return config
}
