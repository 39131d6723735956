import type { Credentials } from '../engine.ts'

export const PSQL = ['psql', '--no-psqlrc', '--quiet', '--set=ON_ERROR_STOP=1'] as const

/**
 * Names are looked up in the server's own schema alone: a function or view that the app made under a name that
 * we call would run with the rights of the superuser, and reach programs of the container. Said with the
 * connection, it outweighs what the owner of a database sets for it, and also holds after `\connect`.
 */
const OWN_NAMES = { PGOPTIONS: '-c search_path=' }

/** The superuser, whom only Portreeve logs in as. */
export const asAdmin = ({ admin_password }: Credentials, database = 'postgres') => ({
  PGHOST: '127.0.0.1',
  PGUSER: 'postgres',
  PGPASSWORD: admin_password,
  PGDATABASE: database,
  ...OWN_NAMES,
})
/** Through the socket, which trusts the inside of the container: a recovered server has passwords of its past. */
export const INSIDE = {
  PGHOST: '/var/run/postgresql',
  PGUSER: 'postgres',
  PGDATABASE: 'postgres',
  ...OWN_NAMES,
}
