import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { getRawAsset } from 'node:sea'
import { zstdDecompressSync } from 'node:zlib'

/** One file of the build, as the list of the binary has it. */
export interface PackedFile {
  /** Path below the folder that it is unpacked to. */
  path: string
  sha256: string
  size: number
  mode: number
}
/** What a binary is. Its name is made of the contents, so that two builds never share a folder. */
export interface Manifest {
  name: string
  version: string
}

export const MANIFEST = 'manifest.json'
export const FILES = 'files.json'
/** All files one after the other, in the order of the list, compressed as one. */
export const CONTENTS = 'contents.zst'
/** The command line of the client, and the one with the verbs of projects: functions of `require` and `module`. */
export const CLIENT = 'client.cjs'
export const WHOLE_CLIENT = 'whole-client.cjs'

const textOf = (asset: string) => Buffer.from(getRawAsset(asset)).toString('utf8')

export const readManifest = (): Manifest => JSON.parse(textOf(MANIFEST)) as Manifest
export const readFiles = (): readonly PackedFile[] => JSON.parse(textOf(FILES)) as PackedFile[]
export const readScript = (asset: string): string => Buffer.from(getRawAsset(asset)).toString('latin1')

/** The bytes of every file. They are all in memory at once, so this is for a process that ends with it. */
export function* readContents(files: readonly PackedFile[]): Generator<[PackedFile, Buffer]> {
  const all = zstdDecompressSync(Buffer.from(getRawAsset(CONTENTS)))
  let at = 0
  for (const file of files) yield [file, all.subarray(at, (at += file.size))]
}

/** Digests files with one piece of memory for all: what a server reads at its start would stay with it. */
export function createDigest(): (path: string) => string {
  const piece = Buffer.allocUnsafeSlow(256 * 1024)
  return (path) => {
    const hash = createHash('sha256')
    const file = openSync(path, 'r')
    try {
      for (let size = readSync(file, piece); size > 0; size = readSync(file, piece))
        hash.update(piece.subarray(0, size))
    } finally {
      closeSync(file)
    }
    return hash.digest('hex')
  }
}
