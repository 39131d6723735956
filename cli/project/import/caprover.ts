import { compact, createMoved, isFields, listOf, type Moved, numberOf, textOf } from './moved.ts'

type Fields = Record<string, any>

/** The image of the version that runs, or the repository that the app is built from. */
function sourceOf(app: Fields): Fields | undefined {
  const repo = app.appPushWebhook?.repoInfo
  if (isFields(repo) && textOf(repo.repo)) {
    const address = textOf(repo.repo)!.replace(/\/$/, '')
    const is_whole = /^(https?:\/\/|ssh:\/\/|git@)/.test(address)
    return compact({ git_url: is_whole ? address : `https://${address}`, branch: textOf(repo.branch) })
  }
  const version = listOf(app.versions).find((one) => one.version === app.deployedVersion)
  const image = textOf(version?.deployedImageName)
  // What CapRover built itself lies in its own registry only.
  return image && !/(^|\/)img-captain-/.test(image) ? { image } : undefined
}

/** Reads `config-captain.json`, which lies in `data` of a backup of CapRover. */
export function fromCaprover(tree: unknown): Moved {
  const moved = createMoved()
  const all = isFields(tree) && isFields(tree.appDefinitions) ? tree.appDefinitions : {}
  for (const [name, app] of Object.entries(all).filter((entry): entry is [string, Fields] =>
    isFields(entry[1]),
  )) {
    const at = `app ${name}`
    const source = sourceOf(app) ?? { source: 'upload' }
    const no_web = app.notExposeAsWebApp === true
    const made = moved.addApp(
      at,
      name,
      compact({
        ...source,
        port: no_web ? undefined : (numberOf(app.containerHttpPort) ?? 80),
        replicas: numberOf(app.instanceCount),
        domains: listOf(app.customDomain).map((one) =>
          compact({
            hostname: textOf(one.publicDomain),
            ssl_mode: one.hasSsl === false ? 'off' : undefined,
            force_https: app.forceSsl === true && one.hasSsl !== false ? true : undefined,
          }),
        ),
      }),
      Object.fromEntries(listOf(app.envVars).map(({ key, value }) => [String(key), value])),
    )
    if (source.source === 'upload')
      moved.note(
        'changed',
        at,
        `was built from what was sent: send its source with portreeve deploy --app ${made}.`,
      )
    if (no_web)
      moved.note(
        'changed',
        at,
        'takes no requests from outside: add its command below processes, with web: { replicas: 0 }.',
      )
    if (app.instanceCount === 0) moved.note('changed', at, 'was switched off and is started here.')
    const path = textOf(app.captainDefinitionRelativeFilePath)
    if (path && source.git_url)
      moved.note(
        'changed',
        `${at} ${path}`,
        'is not read: the build is detected, or comes from a Dockerfile.',
      )
    if (isFields(app.httpAuth)) moved.noteOpenPage(at)
    for (const volume of listOf(app.volumes)) {
      const path = textOf(volume.containerPath)
      const old = textOf(volume.volumeName)
      const place = `${at} volume ${path ?? '?'}`
      // Its engine knows them by names that begin so.
      if (path && old) moved.addVolume(place, made, path, `captain--${old}`, old)
      else moved.note('refused', place, 'is a folder of the server.')
    }
    for (const port of listOf(app.ports))
      moved.note('refused', `${at} port ${port.hostPort}`, 'is a port of the server.')
    for (const field of [
      'preDeployFunction',
      'customNginxConfig',
      'nodeId',
      'redirectDomain',
      'serviceUpdateOverride',
    ] as const)
      if (textOf(app[field])) moved.note('refused', `${at} ${field}`, 'has no counterpart here.')
  }
  return moved
}
