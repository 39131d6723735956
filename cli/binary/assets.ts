import { createHash } from 'node:crypto'
import { getRawAsset } from 'node:sea'
import { zstdDecompressSync } from 'node:zlib'

/** One file of the build, as the manifest of the binary lists it. */
export interface PackedFile {
  /** Path below the folder that it is unpacked to. */
  path: string
  sha256: string
  size: number
  mode: number
}
/** What a binary carries. Its name is made of the contents, so that two builds never share a folder. */
export interface Manifest {
  name: string
  version: string
  files: readonly PackedFile[]
}

export const MANIFEST = 'manifest.json'
/** All files one after the other, in the order of the manifest, compressed as one. */
export const CONTENTS = 'contents.zst'

export const readManifest = (): Manifest =>
  JSON.parse(Buffer.from(getRawAsset(MANIFEST)).toString('utf8')) as Manifest

/** The bytes of every file. Only the first start of a binary pays for this. */
export function* readContents({ files }: Manifest): Generator<[PackedFile, Buffer]> {
  const all = zstdDecompressSync(Buffer.from(getRawAsset(CONTENTS)))
  let at = 0
  for (const file of files) yield [file, all.subarray(at, (at += file.size))]
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
