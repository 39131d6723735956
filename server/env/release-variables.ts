import { Fatal } from '#server/kernel/jobs/definition'
import { createResolver, type Known, UnresolvedError } from './references.ts'
import type { VariableRepository, VariableRow } from './repository.ts'
import type { ReleaseVariable, ReleaseVariables } from './resolved.ts'
import type { PlainVariable, Vault } from './values.ts'

/** What variables need of databases; handed in at composition. */
export interface DatabasePorts {
  /** What a database of a project offers, by its name; undefined when there is none of that name. */
  database(project_id: string, name: string): Readonly<Record<string, string>> | undefined
  /** What links give an app, such as `DATABASE_URL`; a variable of the app with the same key counts instead. */
  linked(app: { id: string; project_id: string }): Readonly<Record<string, string>>
}

const unreadable = (name: string) =>
  new Fatal(
    'secret_unreadable',
    `The value of ${name} cannot be read with the key of this installation.`,
    'Restore the key file, or set the variable again.',
  )

/** Works out what the variables of an app are at this moment. */
export function createReleaseVariables(repository: VariableRepository, vault: Vault, ports: DatabasePorts) {
  /** References of a project; what cannot be read is handed to `missing`. */
  const resolverOf = (project_id: string, missing: (name: string) => Known) =>
    createResolver({
      shared(key) {
        const row = repository.find({ project_id }, key)
        return row && (vault.openReadable(row) ?? missing(`project.${key}`))
      },
      database: (name) => ports.database(project_id, name),
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

  return {
    /**
     * The variables of a release that is made now. Throws Fatal when a value cannot be read or a reference
     * leads nowhere: a release never starts with an empty value instead.
     */
    of({ id, project_id }: { id: string; project_id: string }, preview = false): ReleaseVariables {
      const resolve = resolverOf(project_id, strict)
      return Object.fromEntries([
        ...linkedTo({ id, project_id }),
        ...repository.all({ app_id: id }).map((row) => {
          try {
            return resolved(row, resolve, preview)
          } catch (error) {
            if (!(error instanceof UnresolvedError)) throw error
            throw new Fatal(
              'variable_unresolved',
              `The value of ${row.key} ${error.message}`,
              'Change the variable, or add what it names.',
            )
          }
        }),
      ])
    },
    /** The same of what can be worked out, for comparing and for keeping values out of logs. */
    readable({ id, project_id }: { id: string; project_id: string }, preview = false): ReleaseVariables {
      const resolve = resolverOf(project_id, lenient)
      return Object.fromEntries([
        ...linkedTo({ id, project_id }),
        ...repository.all({ app_id: id }).flatMap((row) => {
          try {
            return [resolved(row, resolve, preview)]
          } catch (error) {
            if (error instanceof UnresolvedError || error instanceof Fatal) return []
            throw error
          }
        }),
      ])
    },
    /** Throws UnresolvedError when a reference of these values leads nowhere or in a circle. */
    check(project_id: string, values: readonly (string | null)[]): void {
      const resolve = resolverOf(project_id, lenient)
      for (const value of values) if (value) resolve({ value, secret: false })
    },
  }
}
