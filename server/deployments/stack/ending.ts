import type { Engine } from '#server/platform/engine/engine'
import { imagesOf } from '../release-images.ts'
import type { Release } from '../releases.ts'

/** Ends instances of a release; of a stack also those that an earlier release has made, or only some services. */
export async function endRelease(
  engine: Pick<Engine, 'removeRelease'>,
  release: Pick<Release, 'id' | 'settings'>,
  grace_s: number | undefined,
  only?: ReadonlySet<string>,
): Promise<void> {
  const { stack, stop_grace_s } = release.settings
  if (!stack) return engine.removeRelease(release.id, grace_s ?? stop_grace_s)
  // What others depend on ends last.
  for (const service of [...stack].reverse())
    if (!only || only.has(service.name))
      await engine.removeRelease(service.made_by, grace_s ?? service.stop_grace_s, service.name)
}

/** Releases whose containers a release has: its own, and of a stack those of services that did not change. */
export const makersOf = ({ id, settings }: Pick<Release, 'id' | 'settings'>): string[] => [
  ...new Set(settings.stack?.map(({ made_by }) => made_by) ?? [id]),
]

/** Whether every image of a release is on this server. */
export async function hasImages(engine: Pick<Engine, 'findImage'>, release: Release): Promise<boolean> {
  for (const id of imagesOf(release)) if (!(await engine.findImage(id))) return false
  return true
}

/** Has the engine keep the instances of a release alive, or leaves them alone while a rollout watches. */
export async function superviseAll(
  engine: Pick<Engine, 'superviseRelease'>,
  release: Pick<Release, 'id' | 'settings'>,
  supervised: boolean,
): Promise<void> {
  for (const id of makersOf(release)) await engine.superviseRelease(id, supervised)
}

/** Services of a release whose containers another one does not have. */
export const replacedBy = (before: Release, after: Release): Set<string> =>
  new Set(
    (before.settings.stack ?? [])
      .filter(
        (old) =>
          !after.settings.stack?.some(({ name, made_by }) => name === old.name && made_by === old.made_by),
      )
      .map(({ name }) => name),
  )
