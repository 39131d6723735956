import type { Db } from '#server/kernel/db'

interface BuiltImage {
  image_id: string
  /** Tag of an image that was built for it. */
  image_tag: string | null
}
/** What a release says of its images. */
export interface ReleaseImages extends BuiltImage {
  id: string
  image_present: boolean
  /** Each service of a compose app has its own. */
  settings: { stack?: readonly BuiltImage[] }
}
interface ImagesRow extends Omit<ReleaseImages, 'settings' | 'image_present'> {
  image_present: number
  stack: string
}
/** The settings of one release may have megabytes, too: commands of a compose file. */
const COLUMNS = `id, image_id, image_tag, image_present, (SELECT json_group_array(json_object('image_id',
  value ->> 'image_id', 'image_tag', value ->> 'image_tag')) FROM json_each(settings, '$.stack')) AS stack`

/** Reads what releases say of their images, and nothing else of them. */
export function createImageReader(db: Db) {
  return (where: string, ...values: unknown[]): ReleaseImages[] =>
    (db.sql(`SELECT ${COLUMNS} FROM releases WHERE ${where}`).all(...values) as ImagesRow[]).map(
      ({ stack, image_present, ...row }) => {
        const services = JSON.parse(stack) as NonNullable<ReleaseImages['settings']['stack']>
        return {
          ...row,
          image_present: image_present === 1,
          settings: services.length > 0 ? { stack: services } : {},
        }
      },
    )
}

/** Images that a release runs: one, or one for each service of its stack. */
export const imagesOf = ({ image_id, settings }: Pick<ReleaseImages, 'image_id' | 'settings'>): string[] =>
  settings?.stack?.map((service) => service.image_id) ?? [image_id]
/** Images that were built for a release, by their tags. */
export const tagsOf = (release: ReleaseImages, image_id: string): string[] =>
  (release.settings.stack ?? [release]).flatMap((one) =>
    one.image_id === image_id && one.image_tag ? [one.image_tag] : [],
  )

/**
 * Images of an app that no kept release needs: all but those of the releases to roll back to and of those in
 * use.
 */
export function removableImages(
  targets: readonly ReleaseImages[],
  all: readonly ReleaseImages[],
  in_use: ReadonlySet<string>,
): string[] {
  const kept = new Set(targets.flatMap(imagesOf))
  for (const release of all) if (in_use.has(release.id)) for (const id of imagesOf(release)) kept.add(id)
  return [
    ...new Set(
      all
        .filter((release) => release.image_present)
        .flatMap(imagesOf)
        .filter((id) => !kept.has(id)),
    ),
  ]
}
