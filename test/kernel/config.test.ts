import { describe, expect, it } from 'vitest'
import { ConfigError, loadConfig } from '#server/kernel/config'

describe('the configuration', () => {
  it('has a default for everything', () => {
    expect(loadConfig({})).toMatchObject({
      host: '0.0.0.0',
      port: 9000,
      admin_email: 'admin@localhost',
      admin_password: undefined,
      http_port: 80,
      https_port: 443,
      docker_host: 'unix:///var/run/docker.sock',
      log_format: 'text',
      log_level: 'info',
      build_concurrency: 1,
      layer_bytes: 10 * 1024 ** 3,
      allowed_private_hosts: [],
      trusted_proxies: [],
      base_domain: undefined,
      public_url: undefined,
      secret_key: undefined,
      crash_at: undefined,
    })
    expect(loadConfig({}).data_directory).toMatch(/^\/.*\/\.data$/)
  })
  it('takes an empty variable for an absent one', () => {
    expect(loadConfig({ PORT: '', PORTREEVE_BASE_DOMAIN: ' ', PORTREEVE_SECRET_KEY: '' })).toMatchObject({
      port: 9000,
      base_domain: undefined,
      secret_key: undefined,
    })
  })
  it.each([
    ['PORT', '8080', 'port', 8080],
    ['PORTREEVE_BASE_DOMAIN', 'Apps.Example.com.', 'base_domain', 'apps.example.com'],
    ['PORTREEVE_PUBLIC_URL', 'https://portreeve.example.com/', 'public_url', 'https://portreeve.example.com'],
    [
      'PORTREEVE_ALLOWED_PRIVATE_HOSTS',
      'git.internal:3000, 10.0.0.0/8 ,[::1]:80',
      'allowed_private_hosts',
      ['git.internal:3000', '10.0.0.0/8', '[::1]:80'],
    ],
    ['PORTREEVE_TRUSTED_PROXIES', '10.0.0.1,fd00::/8', 'trusted_proxies', ['10.0.0.1', 'fd00::/8']],
    ['DOCKER_HOST', 'tcp://127.0.0.1:2375', 'docker_host', 'tcp://127.0.0.1:2375'],
    ['PORTREEVE_CRASH_AT', 'deploy.build:before', 'crash_at', 'deploy.build:before'],
  ])('reads %s=%s', (name, value, field, expected) => {
    expect(loadConfig({ [name]: value })).toHaveProperty(field, expected)
  })
  it.each([
    ['PORT', 'http'],
    ['PORT', '-1'],
    ['PORT', '65536'],
    ['PORT', '9e3'],
    ['PORT', '9000.5'],
    ['PORTREEVE_ADMIN_EMAIL', 'admin'],
    ['PORTREEVE_ADMIN_PASSWORD', 'short'],
    ['PORTREEVE_ADMIN_PASSWORD', 'x'.repeat(257)],
    ['PORTREEVE_SECRET_KEY', 'x'.repeat(31)],
    ['PORTREEVE_BASE_DOMAIN', 'https://example.org'],
    ['PORTREEVE_BASE_DOMAIN', 'example.com:80'],
    ['PORTREEVE_BASE_DOMAIN', '-x.example.com'],
    ['PORTREEVE_BASE_DOMAIN', 'a b'],
    ['PORTREEVE_PUBLIC_URL', 'portal.example.org'],
    ['PORTREEVE_PUBLIC_URL', 'ftp://example.com'],
    ['PORTREEVE_PUBLIC_URL', 'https://user@example.com'],
    ['PORTREEVE_PUBLIC_URL', 'https://example.com/?x'],
    ['PORTREEVE_HTTP_PORT', '0'],
    ['PORTREEVE_HTTPS_PORT', 'x'],
    ['PORTREEVE_ALLOWED_PRIVATE_HOSTS', 'a b'],
    ['PORTREEVE_ALLOWED_PRIVATE_HOSTS', 'http://x'],
    ['PORTREEVE_TRUSTED_PROXIES', 'proxy.example.com'],
    ['PORTREEVE_TRUSTED_PROXIES', '10.0.0.0/33'],
    ['PORTREEVE_TRUSTED_PROXIES', 'fe80::1%eth0'],
    ['DOCKER_HOST', '/var/run/docker.sock'],
    ['DOCKER_HOST', 'unix://relative'],
    ['DOCKER_HOST', 'ssh://host'],
    ['PORTREEVE_LOG_FORMAT', 'xml'],
    ['PORTREEVE_LOG_LEVEL', 'trace'],
    ['PORTREEVE_BUILD_CONCURRENCY', '0'],
    ['PORTREEVE_CRASH_AT', 'anywhere'],
  ])('refuses %s=%s with a sentence that names the variable and not its value', (name, value) => {
    const load = () => loadConfig({ [name]: value })
    expect(load).toThrow(ConfigError)
    expect(load).toThrow(new RegExp(`^${name} must .*[.2]$`))
    if (value.length > 8) expect(load).not.toThrow(value)
  })
  it('refuses two uses of one port', () => {
    expect(() => loadConfig({ PORTREEVE_HTTP_PORT: '443' })).toThrow(
      'PORTREEVE_HTTP_PORT and PORTREEVE_HTTPS_PORT must differ.',
    )
    expect(() => loadConfig({ PORT: '80' })).toThrow(
      'PORT must differ from PORTREEVE_HTTP_PORT and PORTREEVE_HTTPS_PORT.',
    )
  })
})
