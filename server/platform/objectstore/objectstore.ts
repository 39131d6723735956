import type { GenericSchema } from 'valibot'
import type { GuardedClient } from '#server/platform/outbound/client'
import type { Dial } from '#server/platform/outbound/outbound'

/** An object and what its store says about it. */
export interface StoredObject {
  key: string
  size_bytes: number
}
export interface PutOptions {
  signal?: AbortSignal
  /** Told how many bytes have been handed over so far. */
  onProgress?: (size_bytes: number) => void
}
/** First and last byte that are read, counted from 0; without `end` up to the last one. */
export interface ByteRange {
  start: number
  end?: number
}

/**
 * A place that keeps large objects under keys. Everything is streamed: an object may be larger than memory.
 * Throws ObjectStoreError only.
 */
export interface ObjectStore {
  /** Stores the whole stream under the key, or nothing: a failure leaves no partial object. */
  put(key: string, source: AsyncIterable<Uint8Array>, options?: PutOptions): Promise<{ size_bytes: number }>
  /** The bytes of an object, or of a part of it. Throws `not_found`, also while it is being read. */
  get(key: string, range?: ByteRange, signal?: AbortSignal): AsyncIterable<Uint8Array>
  /** What is stored under a key; undefined when nothing is. */
  stat(key: string, signal?: AbortSignal): Promise<StoredObject | undefined>
  /** Every object whose key begins with the text. */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<StoredObject>
  /** Removes an object; a missing one is fine. */
  delete(key: string, signal?: AbortSignal): Promise<void>
  /** Ends connections. */
  close(): Promise<void>
}

/** What stores need of the outside world. */
export interface StorePorts {
  client: GuardedClient
  dial: Dial
  /** Folder below which local stores keep their objects. */
  local_directory: string
}

/** One kind of store: one file of facts. The dashboard draws its form from `config`. */
export interface ObjectStoreDescriptor {
  kind: string
  title: string
  config: GenericSchema
  /** Fields of `config` that are sealed at rest and never shown. */
  secrets: readonly string[]
  /** Where the objects lie, in words for people, without a secret. */
  location(config: Record<string, unknown>): string
  /** Nothing is connected to before the first call. */
  create(config: Record<string, unknown>, ports: StorePorts): ObjectStore
}

export type ObjectStoreErrorCode =
  | 'not_found'
  | 'full'
  | 'denied'
  | 'host_key'
  | 'unreachable'
  | 'invalid'
  | 'aborted'
  | 'failed'

/** `message` says in one sentence what the store refused or why it cannot be reached, without a secret. */
export class ObjectStoreError extends Error {
  readonly code: ObjectStoreErrorCode
  constructor(code: ObjectStoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ObjectStoreError'
    this.code = code
  }
}

/** Throws for a key that could leave its folder or that some store would read differently. */
export function checkKey(key: string): void {
  const parts = key.split('/')
  if (key.length > 512 || !parts.every((part) => /^[A-Za-z0-9_][A-Za-z0-9._-]*$/.test(part)))
    throw new ObjectStoreError('invalid', 'The name of the object is not valid.')
}

export const missing = () => new ObjectStoreError('not_found', 'The object is not there any more.')

/** Rejects with the store's own error once the caller gave up. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new ObjectStoreError('aborted', 'The work was cancelled.')
}
