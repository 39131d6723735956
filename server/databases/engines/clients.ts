import { shellWord } from '#server/kernel/shell-word'
import type { Credentials, DatabaseAddress, Snippet } from '../engine.ts'

/** The client that MySQL and MariaDB share but for its name; a password among its arguments would be seen by all. */
export const mysqlClient =
  (client: 'mysql' | 'mariadb', encrypted: string) =>
  ({ username, password, database }: Credentials, { host, port, tls }: DatabaseAddress): string =>
    [
      `MYSQL_PWD=${shellWord(password)} ${client} --host=${host} --port=${port} --user=${username}`,
      ...(tls ? [encrypted] : []),
      shellWord(database),
    ].join(' ')

const node = (library: string, code: string): Snippet => ({ language: 'Node.js', library, code })
const python = (library: string, code: string): Snippet => ({ language: 'Python', library, code })

export const POSTGRES: readonly Snippet[] = [
  node(
    'pg',
    `import { env } from 'node:process'
import pg from 'pg'

const client = new pg.Client({ connectionString: env.DATABASE_URL })
await client.connect()
const { rows } = await client.query('SELECT now()')`,
  ),
  python(
    'psycopg',
    `import os, psycopg

with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    print(connection.execute("SELECT now()").fetchone())`,
  ),
]
export const MYSQL: readonly Snippet[] = [
  node(
    'mysql2',
    `import { env } from 'node:process'
import mysql from 'mysql2/promise'

const connection = await mysql.createConnection(env.DATABASE_URL)
const [rows] = await connection.query('SELECT now()')`,
  ),
  python(
    'PyMySQL',
    `import os, pymysql
from urllib.parse import unquote, urlparse

url = urlparse(os.environ["DATABASE_URL"])
connection = pymysql.connect(
    host=url.hostname, port=url.port, user=url.username, password=unquote(url.password), database=url.path[1:]
)`,
  ),
]
export const MONGODB: readonly Snippet[] = [
  node(
    'mongodb',
    `import { env } from 'node:process'
import { MongoClient } from 'mongodb'

const client = new MongoClient(env.DATABASE_URL)
const orders = await client.db().collection('orders').find().toArray()`,
  ),
  python(
    'pymongo',
    `import os
from pymongo import MongoClient

database = MongoClient(os.environ["DATABASE_URL"]).get_default_database()
print(database.orders.find_one())`,
  ),
]
export const REDIS: readonly Snippet[] = [
  node(
    'redis',
    `import { env } from 'node:process'
import { createClient } from 'redis'

const client = await createClient({ url: env.DATABASE_URL }).connect()
await client.set('greeting', 'hello')`,
  ),
  python(
    'redis',
    `import os, redis

client = redis.from_url(os.environ["DATABASE_URL"])
client.set("greeting", "hello")`,
  ),
]
export const CLICKHOUSE: readonly Snippet[] = [
  node(
    '@clickhouse/client',
    `import { env } from 'node:process'
import { createClient } from '@clickhouse/client'

const client = createClient({ url: env.DATABASE_URL })
const answer = await client.query({ query: 'SELECT now()', format: 'JSONEachRow' })`,
  ),
  python(
    'clickhouse-connect',
    `import os, clickhouse_connect

client = clickhouse_connect.get_client(dsn=os.environ["DATABASE_URL"])
print(client.query("SELECT now()").result_rows)`,
  ),
]
