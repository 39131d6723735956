import protobuf from 'protobufjs/light.js'

/**
 * The messages of BuildKit that we speak, as descriptors in code: the server is bundled, and a path to a
 * .proto file inside a package would not survive that. Fields that we never read are left out; protobuf skips
 * what it does not know.
 */
const root = protobuf.Root.fromJSON({
  nested: {
    Timestamp: { fields: { seconds: { type: 'int64', id: 1 }, nanos: { type: 'int32', id: 2 } } },
    Vertex: {
      fields: {
        digest: { type: 'string', id: 1 },
        name: { type: 'string', id: 3 },
        cached: { type: 'bool', id: 4 },
        started: { type: 'Timestamp', id: 5 },
        completed: { type: 'Timestamp', id: 6 },
        error: { type: 'string', id: 7 },
      },
    },
    VertexStatus: {
      fields: {
        ID: { type: 'string', id: 1 },
        vertex: { type: 'string', id: 2 },
        name: { type: 'string', id: 3 },
        current: { type: 'int64', id: 4 },
        total: { type: 'int64', id: 5 },
        completed: { type: 'Timestamp', id: 8 },
      },
    },
    VertexLog: {
      fields: {
        vertex: { type: 'string', id: 1 },
        stream: { type: 'int64', id: 3 },
        msg: { type: 'bytes', id: 4 },
      },
    },
    VertexWarning: {
      fields: {
        vertex: { type: 'string', id: 1 },
        level: { type: 'int64', id: 2 },
        short: { type: 'bytes', id: 3 },
      },
    },
    StatusResponse: {
      fields: {
        vertexes: { rule: 'repeated', type: 'Vertex', id: 1 },
        statuses: { rule: 'repeated', type: 'VertexStatus', id: 2 },
        logs: { rule: 'repeated', type: 'VertexLog', id: 3 },
        warnings: { rule: 'repeated', type: 'VertexWarning', id: 4 },
      },
    },
    CredentialsRequest: { fields: { Host: { type: 'string', id: 1 } } },
    CredentialsResponse: {
      fields: { Username: { type: 'string', id: 1 }, Secret: { type: 'string', id: 2 } },
    },
    GetSecretRequest: { fields: { ID: { type: 'string', id: 1 } } },
    GetSecretResponse: { fields: { data: { type: 'bytes', id: 1 } } },
    Stat: {
      fields: {
        path: { type: 'string', id: 1 },
        mode: { type: 'uint32', id: 2 },
        uid: { type: 'uint32', id: 3 },
        gid: { type: 'uint32', id: 4 },
        size: { type: 'int64', id: 5 },
        modTime: { type: 'int64', id: 6 },
        linkname: { type: 'string', id: 7 },
      },
    },
    HealthRequest: { fields: { service: { type: 'string', id: 1 } } },
    HealthResponse: { fields: { status: { type: 'uint32', id: 1 } } },
    Packet: {
      fields: {
        type: { type: 'uint32', id: 1 },
        stat: { type: 'Stat', id: 2 },
        ID: { type: 'uint32', id: 3 },
        data: { type: 'bytes', id: 4 },
      },
    },
  },
})

/** Encoder and decoder of one message type, in the form that gRPC wants. */
export interface Codec<T> {
  encode(message: T): Buffer
  decode(bytes: Uint8Array): T
}

function codec<T extends object>(name: string): Codec<T> {
  const type = root.lookupType(name)
  return {
    encode: (message) => Buffer.from(type.encode(type.fromObject(message)).finish()),
    decode: (bytes) =>
      type.toObject(type.decode(bytes), { longs: Number, bytes: Buffer, defaults: false }) as T,
  }
}

export interface Moment {
  seconds?: number
  nanos?: number
}
export interface Vertex {
  digest: string
  name?: string
  cached?: boolean
  started?: Moment
  completed?: Moment
  error?: string
}
export interface VertexStatus {
  ID?: string
  vertex?: string
  name?: string
  current?: number
  total?: number
  completed?: Moment
}
export interface VertexLog {
  vertex: string
  stream?: number
  msg?: Buffer
}
export interface Trace {
  vertexes?: Vertex[]
  statuses?: VertexStatus[]
  logs?: VertexLog[]
  warnings?: { short?: Buffer }[]
}
export interface Packet {
  type?: number
  stat?: {
    path: string
    mode: number
    uid: number
    gid: number
    size: number
    modTime: string
    linkname?: string
  }
  ID?: number
  data?: Buffer
}

export const traceCodec = codec<Trace>('StatusResponse')
export const packetCodec = codec<Packet>('Packet')
export const credentialsRequestCodec = codec<{ Host?: string }>('CredentialsRequest')
export const credentialsResponseCodec = codec<{ Username: string; Secret: string }>('CredentialsResponse')
export const secretRequestCodec = codec<{ ID?: string }>('GetSecretRequest')
export const secretResponseCodec = codec<{ data: Buffer }>('GetSecretResponse')
export const healthRequestCodec = codec<{ service?: string }>('HealthRequest')
export const healthResponseCodec = codec<{ status: number }>('HealthResponse')
