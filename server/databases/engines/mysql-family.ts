import type { ContainerCommand, Credentials } from '../engine.ts'

/** What MySQL and MariaDB have in common, in words of the client that each of them ships. */
export const asRoot = (
  client: string,
  { admin_password }: Credentials,
  lines: string[],
): ContainerCommand => ({
  argv: [client, '--user=root', '--batch', '--skip-column-names'],
  env: { MYSQL_PWD: admin_password },
  stdin: lines.join('\n'),
})
/**
 * A dump that was cut off is a valid one, of fewer tables: only its last line tells. Its tools
 * write that line wherever they write the first one.
 */
export const DUMP_ENDS = {
  begun: /^(?:\/\*M?!999999[^\n]*\n)?-- (?:MySQL|MariaDB) dump /,
  mark: '-- Dump completed',
}
/**
 * As the app's login, in its database. Commands of the client in what it reads (`\\!`, `system`)
 * are text, and files that a dump asks for (`LOAD DATA LOCAL`) are not given to it: the client runs
 * as root, with the variables of the container.
 */
export const asApp = (
  client: string,
  { username, password, database }: Credentials,
  ...more: string[]
): ContainerCommand => ({
  argv: [
    ...[client, '--host=127.0.0.1', `--user=${username}`, '--batch', '--binary-mode', '--local-infile=0'],
    ...more,
    database,
  ],
  env: { MYSQL_PWD: password },
})
/** The database and the rights on it. Whoever has a table of it locked keeps these waiting. */
export const ownDatabase = ({ username, database }: Credentials): string[] => [
  `CREATE DATABASE IF NOT EXISTS \`${database}\` CHARACTER SET utf8mb4;`,
  `GRANT ALL ON \`${database}\`.* TO '${username}'@'%';`,
]
export const dumpArguments = ({ database }: Credentials): string[] => [
  '--user=root',
  '--single-transaction',
  '--quick',
  '--routines',
  '--triggers',
  '--events',
  '--no-tablespaces',
  '--hex-blob',
  '--default-character-set=utf8mb4',
  database,
]
/** One statement that counts every table, made by the server of what is there. */
export const countTables = (client: string, credentials: Credentials): ContainerCommand =>
  asRoot(client, credentials, [
    `USE \`${credentials.database}\`;`,
    'SET SESSION group_concat_max_len = 1073741824;',
    "SELECT GROUP_CONCAT(CONCAT('SELECT ', QUOTE(table_name), ', COUNT(*) FROM `', REPLACE(table_name, '`', '``'), '`')",
    "  ORDER BY table_name SEPARATOR ' UNION ALL ') INTO @count FROM information_schema.tables",
    "  WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE';",
    "SET @count = COALESCE(@count, 'DO 0');",
    'PREPARE counting FROM @count;',
    'EXECUTE counting;',
  ])
