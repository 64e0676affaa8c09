import { type BranchNode, type ListNode, leaf, list, toPlain } from '../tree.ts'
import { shape } from './shape.ts'

/** Words in the name, program, package or URL of a server for SQL databases, with the dialect if they say it. */
const databaseWords: Readonly<Record<string, string | undefined>> = {
  ...Object.fromEntries(
    `database databases db dbhub sql mssql sqlserver oracledb duckdb motherduck clickhouse snowflake bigquery redshift
    supabase cockroachdb timescaledb`
      .split(/\s+/)
      .map((word) => [word, undefined]),
  ),
  ...{ postgres: 'postgres', postgresql: 'postgres', pg: 'postgres' },
  ...{ mysql: 'mysql', mariadb: 'mysql', sqlite: 'sqlite' },
}

/** Arguments with SQL in the tools of such servers; a guard also covers other spellings of these names. */
const sqlArguments =
  'sql query queries[] statement statements[] stmt sqlQuery sqlStatement sqlText rawSql rawQuery queryText'.split(' ')

/** A guard for the arguments with SQL of a server whose entry is that of a database; otherwise undefined. */
export function databaseGuard(name: string, server: BranchNode): BranchNode | undefined {
  const { command, url, args } = toPlain(server) as Readonly<Record<string, unknown>>
  const words = [name, command, url, ...(Array.isArray(args) ? args : []).filter(mayNamePackage)]
    .map((text) => String(text ?? ''))
    .flatMap((text) => [text, text.replace(/(?<=[a-z])(?=[A-Z])/g, ' ')])
    .flatMap((text) => text.toLowerCase().split(/[^a-z]+/))
    .filter((word) => Object.hasOwn(databaseWords, word))
  if (words.length === 0) return undefined
  const [dialect = 'any', ...others] = new Set(words.flatMap((word) => databaseWords[word] ?? []))
  return shape(server.at, {
    kind: leaf(server.at, 'sql'),
    arguments: textList(server, sqlArguments),
    dialect: leaf(server.at, others.length > 0 ? 'any' : dialect),
    readOnly: server.members.get('readOnly') ?? leaf(server.at, false),
  })
}

export const textList = ({ at }: BranchNode, texts: readonly string[]): ListNode =>
  list(
    at,
    texts.map((text) => leaf(at, text)),
  )

/** Whether an argument may be a package, an image, a program or a URL: options and folders say nothing of the server. */
const mayNamePackage = (word: unknown): boolean => {
  const text = String(word).replace(/^--?[\w-]+=/, '')
  return !text.startsWith('-') && (!/^(?:[./~]|[A-Za-z]:\\)/.test(text) || /\.(?:[cm]?[jt]s|py|jar)$/.test(text))
}
