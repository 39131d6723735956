import { local } from './local.ts'
import type { ObjectStoreDescriptor } from './objectstore.ts'
import { s3 } from './s3.ts'
import { sftp } from './sftp.ts'

/** Every kind of store, in the order in which a form offers them. */
export const OBJECT_STORES = [local, s3, sftp] as const satisfies readonly ObjectStoreDescriptor[]

/** The descriptor of this kind; undefined for one that this version does not know. */
export const findObjectStore = (kind: string): ObjectStoreDescriptor | undefined =>
  OBJECT_STORES.find((store) => store.kind === kind)
