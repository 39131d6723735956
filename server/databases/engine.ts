/**
 * What Portreeve knows of one database engine: facts and pure functions, no effects. Adding an
 * engine is one file in `engines/` and one line in `engines.ts`.
 */
export interface DatabaseEngine {
  /** Stable name in the API, e.g. `postgres`. */
  name: string
  /** As people write it. */
  label: string
  /** Image without its tag. */
  image: string
  /** Release lines that can be asked for, newest first; the first is the default. A change of line goes by dump. */
  lines: readonly [string, ...string[]]
  port: number
  /** Where the volume is mounted in the container. */
  volume_path: string
  /** Memory below which the server does not start or is killed under its first load. */
  least_memory_bytes: number
  /** Variables of the container: what the image needs to make its first administrator. */
  environment(credentials: Credentials): Record<string, string>
  /** Variables in place of those, which the image reads while its volume is empty only. */
  first_environment?(version: string): Record<string, string>
  /** Arguments for the image's entrypoint; absent keeps the image's own. */
  command?(tls: boolean): readonly string[]
  /** Name that clients log in with; those whose logins alternate have another one after each rotation. */
  username(generation: number): string
  /** Ends with 0 once the server takes connections from outside its container. */
  probe(credentials: Credentials): ContainerCommand
  /** Ends with 0 when these credentials open the database. */
  login(credentials: Credentials): ContainerCommand
  /**
   * Makes the database and the login, or sets the login's password; what was valid before stays
   * valid. The administrator's word, idempotent. `previous` is what linked apps still use: then the
   * database is there, and nothing is asked for that they, or whoever else has that password, can
   * keep waiting by a lock.
   */
  set_password(credentials: Credentials, previous?: Credentials): ContainerCommand
  /** Ends what was valid before: from now on only `credentials` open the database. Idempotent. */
  revoke(credentials: Credentials, previous: Credentials): ContainerCommand
  /** The address that the engine's usual client libraries take as it is. */
  url(credentials: Credentials, address: DatabaseAddress): string
  /** Line of shell with which a person looks into the database from a terminal. */
  client(credentials: Credentials, address: DatabaseAddress): string
  /** How programs connect with the usual libraries; the address is in the variable DATABASE_URL. */
  snippets: readonly Snippet[]
  /** How the server speaks TLS; absent where it cannot be had from files beside the data. */
  tls?: DatabaseTls
  /** Writes a whole, consistent copy of the database to its standard output while clients go on writing. */
  dump: Dump
  /** How a dump becomes a database again, always in an instance on a new and empty volume. */
  restore: Restore
  /** Counts what is in the database, object by object, to compare a copy with its original. */
  count: Count
  /** How its data come back as they were at a moment; absent where the engine keeps no log of its changes. */
  point_in_time?: PointInTime
}

/** Secrets of one database, in clear. They reach a container as variables or standard input, never as arguments. */
export interface Credentials {
  /** Login that apps use; it owns the database and is no administrator of the server. */
  username: string
  password: string
  /** Name of the database inside the server. */
  database: string
  /** Password of the server's own administrator, which only Portreeve uses. */
  admin_password: string
}
/** A command for the inside of a database's container. */
export interface ContainerCommand {
  argv: readonly string[]
  env: Record<string, string>
  /** What it reads; without, its standard input is empty. */
  stdin?: string
  /** What it says when a table stayed locked for too long; the first group names the table, or some of which it was. */
  locked?: RegExp
  /** Whether it prints nothing until most of its work is done, however long that takes. */
  is_quiet?: true
}
/** A few lines of a program. */
export interface Snippet {
  language: 'Node.js' | 'Python'
  library: string
  code: string
}
export interface DatabaseAddress {
  host: string
  port: number
  /** Whether the client must encrypt: set for the address from outside of engines that speak TLS. */
  tls: boolean
}
export interface DatabaseTls {
  /** Port that is published for outside clients: the plain one where both are spoken on it. */
  port: number
  /** What is put beside the data before the server starts with TLS; absent where it makes its own certificate. */
  files?: {
    /** User of the container who must own the key. */
    owner: string
    /** Folder on the volume for `server.crt`, `server.key` and `server.pem` (both in one). */
    directory: string
  }
}

export interface Dump {
  command(credentials: Credentials): ContainerCommand
  /** Ending of the file's name, without a dot. */
  extension: string
  /** Dumps that people send. */
  uploads: DumpFormat
}
export type Restore = StreamRestore | FileRestore
/** What tells a dump of this engine that somebody sends from anything else. */
export interface DumpFormat {
  /** First bytes of every dump; absent where it is text. */
  begins?: Buffer
  /** How people make one. */
  made_with: string
  /** Where it is text: how a dump of that tool begins, and what is then near its end unless it was cut off. */
  ends?: { begun: RegExp; mark: string }
  /** Put before it, so that the client that reads it takes statements only. */
  guard?: string
}
/** The dump is the standard input of a command that logs in as the app does, never as an administrator. */
export interface StreamRestore {
  kind: 'stream'
  /**
   * Arguments of the server while it reads the dump, where it is faster with others than its own.
   * It keeps what it took over a crash all the same, and is started anew before it takes the place
   * of anything.
   */
  load?: readonly string[]
  command(credentials: Credentials): ContainerCommand
}
/** The dump is a file of the server, put in place before the server starts on the new volume. */
export interface FileRestore {
  kind: 'file'
  /** Runs in the place of the server; the dump is its standard input. Ends with 0 when the file is whole. */
  write(): ContainerCommand
  /** Arguments of the entrypoint that make the server read the file. */
  load: readonly string[]
  /** What makes the data last, once the server that loaded it answers the probe. */
  adopt(credentials: Credentials): ContainerCommand
  /** Ends with 0 once that is done. */
  adopted(credentials: Credentials): ContainerCommand
}
export interface Count {
  command(credentials: Credentials): ContainerCommand
  /** Reads what the command printed: name of each table, collection or keyspace, and how much is in it. */
  read(output: string): Record<string, number>
}

/**
 * Recovery of any moment: copies of the server's files, and the log of every change since. Finished
 * pieces of the log wait in a folder beside the data until they are taken to their destination.
 */
export interface PointInTime {
  /** Arguments of a server whose log is kept, besides its own. The server itself bounds how much waits. */
  keep_log: readonly string[]
  /** Makes the folder for pieces that wait. Idempotent. */
  prepare(): ContainerCommand
  /** Prints the server's time (ISO, UTC), a tab, and a text that changes whenever something was committed. */
  look(credentials: Credentials): ContainerCommand
  /** Ends the piece that is being written. Prints the name of the last one that is whole. */
  cut(credentials: Credentials): ContainerCommand
  /** Prints what waits: name, a tab, and bytes. */
  waiting(): ContainerCommand
  isPiece(name: string): boolean
  /** Bytes that a piece has at most: whoever is inside of the container lays what they like beside them. */
  piece_bytes: number
  /** Name among those that wait which says that pieces were left out. */
  gap: string
  /** Prints the bytes of a piece that waits. */
  read(piece: string): ContainerCommand
  /** Removes what waits under these names. */
  remove(names: readonly string[]): ContainerCommand
  /** Name of the piece that follows; names of one server grow as texts. */
  next(piece: string): string
  /** Prints all files of the server as a tar archive while clients go on writing; the log makes it whole. */
  copy(credentials: Credentials): ContainerCommand
  recover: Recover
}
/** From a copy and pieces of the log to a server, on a new and empty volume. */
export interface Recover {
  /** Run in the place of the server, before anything is put there. */
  before(): readonly ContainerCommand[]
  /** Its standard input is the copy. */
  unpack(): ContainerCommand
  /** Its standard input is a tar archive of all pieces that are needed. */
  put(): ContainerCommand
  /** Run in the place of the server once everything is there. */
  after(): readonly ContainerCommand[]
  /** Arguments of the entrypoint that replay up to a moment, or without one to the end of the pieces. */
  load(at: string | null): readonly string[]
  /** What the server says when nothing was committed at or after the moment. */
  ended_early: RegExp
  /** Ends with 0 once everything is replayed and the server takes writes. */
  recovered(): ContainerCommand
  /** Gives the administrator and the database (called `from` until now) what the credentials say, and ends other logins. */
  adopt(credentials: Credentials, from: string): ContainerCommand
  /** Removes the pieces. */
  clean(): ContainerCommand
}

/** Reads lines of a name, a tab and a number. */
export const readCounts = (output: string): Record<string, number> =>
  Object.fromEntries(
    output
      .split('\n')
      .map((line) => line.split('\t'))
      .filter((parts) => parts.length === 2)
      .map(([name, count]) => [name!, Number(count)]),
  )

/** The address of a database as a URL, with every part encoded. */
export function databaseUrl(
  scheme: string,
  { username, password, database }: Pick<Credentials, 'username' | 'password' | 'database'>,
  { host, port }: Pick<DatabaseAddress, 'host' | 'port'>,
  parameters: Record<string, string> = {},
): string {
  const query = new URLSearchParams(parameters).toString()
  const login = `${encodeURIComponent(username)}:${encodeURIComponent(password)}`
  return `${scheme}://${login}@${host}:${port}/${encodeURIComponent(database)}${query ? `?${query}` : ''}`
}
