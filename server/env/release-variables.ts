import { Fatal } from '#server/kernel/jobs/definition'
import { SecretUnreadableError, unlessUnreadable } from '#server/kernel/secrets'
import { createResolver, type Known, UnresolvedError } from './references.ts'
import type { VariableRepository, VariableRow } from './repository.ts'
import { type ReleaseVariable, type ReleaseVariables, secretValuesOf } from './resolved.ts'
import type { PlainVariable, Vault } from './values.ts'

/** The variables of a preview: those of its app as previews see them, and what it has of its own. */
export interface PreviewScope {
  /** The app that it is a preview of. */
  parent: { id: string; project_id: string }
  /** Whether it may have secrets: not what comes from a fork, unless somebody approved that. */
  trusted: boolean
  /** What only previews of the app get, and what tells the program that it is one. */
  added: ReleaseVariables
  /** What the copy of a database offers that the preview has. */
  database(name: string): Readonly<Record<string, string>> | undefined
}
/** What variables need of databases and previews; handed in at composition. */
export interface DatabasePorts {
  /** What a database of a project offers, by its name; undefined when there is none of that name. */
  database(project_id: string, name: string): Readonly<Record<string, string>> | undefined
  /** What links give an app, such as `DATABASE_URL`; a variable of the app with the same key counts instead. */
  linked(app: { id: string; project_id: string }): Readonly<Record<string, string>>
  /** Undefined for an app that is no preview. Which commit is to run decides about trust; left out, the newest. */
  preview(app_id: string, commit?: string): PreviewScope | undefined
}

const unreadable = (name: string) =>
  new Fatal(
    'secret_unreadable',
    `The value of ${name} cannot be read with the key of this installation.`,
    'Restore the key file, or set the variable again.',
  )

/** Whether a variable cannot be worked out for what it says, or for a secret that nobody can read. */
const isInItself = (error: unknown): boolean =>
  error instanceof UnresolvedError || error instanceof Fatal || error instanceof SecretUnreadableError

/** Works out what the variables of an app are at this moment. */
export function createReleaseVariables(repository: VariableRepository, vault: Vault, ports: DatabasePorts) {
  /** References of a project; what cannot be read is handed to `missing`. */
  const resolverOf = (
    project_id: string,
    missing: (name: string) => Known,
    database = (name: string) => ports.database(project_id, name),
  ) =>
    createResolver({
      shared(key) {
        const row = repository.find({ project_id }, key)
        return row && (vault.openReadable(row) ?? missing(`project.${key}`))
      },
      database,
    })
  const strict = (name: string): Known => {
    throw unreadable(name)
  }
  const lenient = (): Known => ({ value: '', secret: true })

  const linkedTo = (app: { id: string; project_id: string }): [string, ReleaseVariable][] =>
    Object.entries(ports.linked(app)).map(([key, value]) => [
      key,
      { value, secret: true, build: false, runtime: true },
    ])
  /** The same for what only looks at them; passwords that can be read are kept out of logs by `secrets`. */
  const readableLinks = (app: Parameters<typeof linkedTo>[0]) => unlessUnreadable(() => linkedTo(app), [])
  const valueFor = (plain: PlainVariable, preview: boolean): string =>
    preview ? (plain.preview_value ?? plain.value) : plain.value

  /** One variable with its references looked up. */
  const resolved = (
    row: VariableRow,
    resolve: (known: Known) => Known,
    preview: boolean,
  ): [string, ReleaseVariable] => {
    const plain = vault.openReadable(row)
    if (!plain) throw unreadable(row.key)
    const known = resolve({ value: valueFor(plain, preview), secret: plain.secret })
    return [row.key, { ...known, build: plain.build, runtime: plain.runtime }]
  }
  const resolvedOrFatal = (...given: Parameters<typeof resolved>): [string, ReleaseVariable] => {
    try {
      return resolved(...given)
    } catch (error) {
      if (!(error instanceof UnresolvedError)) throw error
      throw new Fatal(
        'variable_unresolved',
        `The value of ${given[0].key} ${error.message}`,
        given[2]
          ? 'Give the variable a preview value, or let previews have copies of databases.'
          : 'Change the variable, or add what it names.',
      )
    }
  }
  /** Nothing where one cannot be worked out. */
  const resolvedIfReadable = (...given: Parameters<typeof resolved>): [string, ReleaseVariable][] => {
    try {
      return [resolved(...given)]
    } catch (error) {
      if (isInItself(error)) return []
      throw error
    }
  }

  /**
   * What a preview has of its own. What the platform made up for it alone is no secret of the app; what people
   * set there, or what it refers to, may be one.
   */
  const ownOfPreview = (app_id: string, trusted: boolean): VariableRow[] => {
    const rows = repository.all({ app_id })
    if (trusted) return rows
    const made_up = repository.madeUp(app_id)
    return rows.filter(({ key, secret, refs }) => refs === '[]' && (secret === 0 || made_up.has(key)))
  }
  /** All of a preview; later ones win. What is not trusted never gets as far as opening a secret. */
  const ofPreview = (
    app: { id: string; project_id: string },
    scope: PreviewScope,
    missing: (name: string) => Known,
    each: (...given: Parameters<typeof resolved>) => [string, ReleaseVariable][],
    links = linkedTo(app),
  ): ReleaseVariables => {
    const resolve = resolverOf(app.project_id, missing, (name) => scope.database(name))
    const rows = repository.all({ app_id: scope.parent.id })
    const open = scope.trusted ? rows : rows.filter(({ secret }) => secret === 0)
    const inherited = [
      ...links,
      ...open.flatMap((row) => (scope.trusted ? each : resolvedIfReadable)(row, resolve, true)),
    ]
    const own = ownOfPreview(app.id, scope.trusted).flatMap((row) => each(row, resolve, true))
    const may_see = ([, { secret }]: [string, ReleaseVariable]) => scope.trusted || !secret
    return Object.fromEntries([
      ...inherited.filter(may_see),
      ...own,
      ...Object.entries(scope.added).filter(may_see),
    ])
  }

  return {
    /**
     * The variables of a release that is made now. Throws Fatal when a value cannot be read or a reference
     * leads nowhere: a release never starts with an empty value instead.
     */
    of(app: { id: string; project_id: string; commit_sha?: string | undefined }): ReleaseVariables {
      const scope = ports.preview(app.id, app.commit_sha)
      if (scope) return ofPreview(app, scope, strict, (...given) => [resolvedOrFatal(...given)])
      const resolve = resolverOf(app.project_id, strict)
      return Object.fromEntries([
        ...linkedTo(app),
        ...repository.all({ app_id: app.id }).map((row) => resolvedOrFatal(row, resolve, false)),
      ])
    },
    /**
     * The same of what can be worked out, for comparing and for keeping values out of logs; with `preview`, as
     * previews with secrets have it: one that has none now may still be building a commit that does.
     */
    readable(app: { id: string; project_id: string }, preview = false): ReleaseVariables {
      const scope = ports.preview(app.id)
      const seen = scope && preview ? { ...scope, trusted: true } : scope
      const links = readableLinks(app)
      if (seen) return ofPreview(app, seen, lenient, resolvedIfReadable, links)
      const resolve = resolverOf(app.project_id, lenient)
      return Object.fromEntries([
        ...links,
        ...repository.all({ app_id: app.id }).flatMap((row) => resolvedIfReadable(row, resolve, preview)),
      ])
    },
    /** Values that no log of an app may show, as it has them and as previews of it do; each is opened once. */
    secretValues(app: { id: string; project_id: string }): string[] {
      if (ports.preview(app.id))
        return [false, true].flatMap((preview) => secretValuesOf(this.readable(app, preview)))
      const resolve = resolverOf(app.project_id, lenient)
      const secretsIn = (known: Known): string[] => {
        try {
          const { value, secret } = resolve(known)
          return secret ? [value] : []
        } catch (error) {
          if (isInItself(error)) return []
          throw error
        }
      }
      const own = repository.all({ app_id: app.id }).flatMap((row) => {
        const plain = vault.openReadable(row)
        if (!plain) return []
        const values = new Set([valueFor(plain, false), valueFor(plain, true)])
        return [...values].flatMap((value) => secretsIn({ value, secret: plain.secret }))
      })
      return [...readableLinks(app).map(([, { value }]) => value), ...own]
    },
    /**
     * A check of values whose references lead nowhere or in a circle, which throws UnresolvedError. What they
     * name is worked out once for all of them.
     * @param shared what the project will share; what it does when absent.
     */
    checker(
      project_id: string,
      shared?: (key: string) => Known | undefined,
    ): (values: readonly (string | null)[]) => void {
      const resolve = shared
        ? createResolver({ shared, database: (name) => ports.database(project_id, name) })
        : resolverOf(project_id, lenient)
      return (values) => {
        for (const value of values) if (value) resolve({ value, secret: false })
      }
    },
  }
}
