/** Names that the rules below would not find. */
const CHOSEN = new Map(
  Object.entries({
    'post /api/auth/login': 'logIn',
    'post /api/auth/logout': 'logOut',
    'post /api/auth/refresh': 'refreshToken',
    'get /api/auth/csrf-token': 'getCsrfToken',
    'get /api/auth/me': 'getMe',
    'put /api/auth/me': 'updateMe',
    'put /api/auth/password': 'changePassword',
    'post /api/auth/password/forgot': 'forgotPassword',
    'post /api/auth/password/reset': 'resetPassword',
    'post /api/auth/2fa/setup': 'setUpTwoFactor',
    'post /api/auth/2fa/enable': 'enableTwoFactor',
    'post /api/auth/2fa/disable': 'disableTwoFactor',
    'post /api/auth/2fa/recovery-codes': 'replaceRecoveryCodes',
    'post /api/auth/ws-ticket': 'createWebSocketTicket',
    'post /api/auth/invitations/accept': 'acceptInvitation',
    'delete /api/auth/sessions/:id': 'revokeSession',
    'delete /api/auth/api-keys/:id': 'revokeApiKey',
    'get /api/team/members': 'listMembers',
    'post /api/team/members': 'inviteMember',
    'delete /api/team/members/:id': 'removeMember',
    'post /api/team/members/:id/password-reset': 'resetMemberPassword',
    'post /api/projects/:id/members': 'addProjectMember',
    'delete /api/projects/:id/members/:user_id': 'removeProjectMember',
    'get /api/projects/:id/audit-logs': 'listProjectAuditLogs',
    'post /api/apps/detect': 'detectStack',
    'get /api/apps/:id/changes': 'listAppPendingChanges',
    'delete /api/apps/:id/changes/:key': 'discardAppPendingChange',
    'get /api/deployments/:id/compare': 'compareDeployments',
    'post /api/apps/:id/upload': 'uploadAppSource',
    'post /api/apps/:id/exec': 'runAppCommand',
    'post /api/apps/:id/env/import': 'importAppVariables',
    'get /api/apps/:id/env/export': 'exportAppVariables',
    'get /api/apps/:id/env/:key/reveal': 'revealAppVariable',
    'put /api/apps/:id/scaling/auto': 'setAppAutoScaling',
    'delete /api/apps/:id/scaling/auto': 'removeAppAutoScaling',
    'put /api/projects/:id/env': 'replaceProjectVariables',
    'post /api/apps/:id/mounts': 'addAppMount',
    'delete /api/apps/:id/mounts/:mount_id': 'removeAppMount',
    'post /api/certificates/csr': 'createSigningRequest',
    'put /api/domains/:id/ssl-mode': 'setDomainSslMode',
    'post /api/domains/verify': 'verifyDomain',
    'get /api/databases/engines': 'listDatabaseEngines',
    'post /api/databases/:id/backup': 'backUpDatabase',
    'post /api/databases/:id/links': 'linkDatabase',
    'delete /api/databases/:id/links/:app_id': 'unlinkDatabase',
    'post /api/ssh-keys': 'addSshKey',
    'post /api/ssh-keys/generate': 'generateSshKey',
    'post /api/git-credentials': 'addGitCredential',
    'post /api/registries': 'addRegistry',
    'post /api/storage-providers': 'addStorageProvider',
    'post /api/nodes': 'addNode',
    'post /api/webhooks/git/:token': 'receiveGitWebhook',
    'post /api/webhooks/deploy/:token': 'receiveDeployHook',
    'post /api/webhooks/:id/deliveries/:delivery_id/redeliver': 'redeliverWebhook',
    'post /api/redirects/test': 'testRedirects',
    'get /api/monitoring/server': 'getServerMetrics',
    'get /api/monitoring/apps/:id': 'getAppMetrics',
    'get /api/monitoring/databases/:id': 'getDatabaseMetrics',
    'get /api/monitoring/alerts': 'listAlertRules',
    'post /api/monitoring/alerts': 'createAlertRule',
    'put /api/monitoring/alerts/:id': 'updateAlertRule',
    'delete /api/monitoring/alerts/:id': 'deleteAlertRule',
    'get /api/monitoring/alerts/history': 'listAlertHistory',
    'get /api/monitoring/uptime': 'listUptimeChecks',
    'post /api/monitoring/uptime': 'createUptimeCheck',
    'get /api/monitoring/uptime/:id': 'getUptimeCheck',
    'put /api/monitoring/uptime/:id': 'updateUptimeCheck',
    'delete /api/monitoring/uptime/:id': 'deleteUptimeCheck',
    'get /api/settings': 'getSettings',
    'put /api/settings': 'updateServerSettings',
    'put /api/settings/domain': 'updateDomainSettings',
    'put /api/settings/dns-provider': 'updateDnsProviderSettings',
    'put /api/settings/acme': 'updateAcmeSettings',
    'put /api/settings/dns': 'updateDnsSettings',
    'put /api/settings/smtp': 'updateSmtpSettings',
    'get /api/backups/:id/download': 'downloadBackup',
    'put /api/apps/:id/previews/settings': 'updateAppPreviewSettings',
    'post /api/apps/:id/previews/cleanup': 'cleanUpAppPreviews',
    'get /api/templates/categories': 'listTemplateCategories',
    'get /api/system/info': 'getSystemInfo',
    'post /api/system/prune': 'pruneSystem',
    'get /api/audit-logs': 'listAuditLogs',
    'get /api/search': 'search',
    'get /api/openapi.json': 'getOpenApiJson',
    'get /api/openapi.yaml': 'getOpenApiYaml',
    'get /api/asyncapi.json': 'getAsyncApiJson',
  }),
)
/** Parts of paths that group and name nothing. */
const GROUPS = new Set(['auth', 'team', 'system'])
const NOUNS = new Map([
  ['env', 'variables'],
  ['uptime', 'uptime-checks'],
])
const pascal = (text: string) =>
  text
    .split(/[^a-z0-9]+/i)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
const singular = (word: string) => word.replace(/ies$/, 'y').replace(/(?<!s)s$/, '')

interface Part {
  word: string
  is_one: boolean
}
/** `/api/apps/:id/env/:key` as its words, each with whether it names one thing. */
function partsOf(path: string): Part[] {
  const parts: Part[] = []
  for (const segment of path.replace(/^\/api\//, '').split('/')) {
    const last = parts.at(-1)
    if (segment.startsWith(':') && last) last.is_one = true
    else parts.push({ word: NOUNS.get(segment) ?? segment, is_one: false })
  }
  return parts
}

/**
 * What a person would call an operation: `listApps`, `deployApp`, `removeProjectMember`.
 * @param is_list whether its answer is a list.
 */
export function operationId(method: string, path: string, is_list = false): string {
  const chosen = CHOSEN.get(`${method} ${path}`)
  if (chosen) return chosen
  const parts = partsOf(path).filter(({ word }) => !GROUPS.has(word))
  const last = parts.at(-1)!
  const parents = parts
    .slice(0, -1)
    .map(({ word, is_one }) => pascal(is_one ? singular(word) : word))
    .join('')
  const one = parents + pascal(singular(last.word))
  const all = parents + pascal(last.word)
  if (method === 'get') {
    if (is_list) return `list${all}`
    return `get${last.is_one ? one : all}`
  }
  if (method === 'put') return `update${last.is_one ? one : all}`
  if (method === 'delete') return `delete${last.is_one ? one : all}`
  if (last.word.endsWith('s') && !last.is_one) return `create${one}`
  const verb = pascal(last.word)
  return verb.charAt(0).toLowerCase() + verb.slice(1) + parents
}
