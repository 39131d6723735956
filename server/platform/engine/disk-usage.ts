/** What takes the disk of the engine. */
export interface EngineDisk {
  /** Folder of the engine's data on its machine. */
  directory: string
  /** Layers of all images, each counted once. */
  layers_bytes: number
  images: DiskImage[]
  /** What containers wrote beside their volumes. */
  containers: { count: number; bytes: number }
  volumes: { count: number; bytes: number }
  build_cache: DiskCache[]
}
export interface DiskImage {
  id: string
  tags: string[]
  /** `repo@sha256:…` of images that a registry can bring back. */
  digests: string[]
  /** What would be free without it: layers that no other image has. */
  own_bytes: number
  /** Containers made of it, running or not. */
  containers: number
  /** Who made it: this installation, another one on the same engine, or nobody of us. */
  made_by: 'us' | 'another' | 'nobody'
  /** When it was made or, if later, last pulled or named. */
  since: string
}
export interface DiskCache {
  id: string
  bytes: number
  in_use: boolean
  last_used_at: string
}

export interface CacheLimit {
  unused_for_s?: number
  keep_bytes?: number
}
