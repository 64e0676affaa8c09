import type { Guard, Guarded, Refuse } from './guard.ts'
import { asPostgres, type Dialect, dialectNames } from './sql-dialects.ts'
import { parseSql, type Statement, SyntaxProblem } from './sql-parser.ts'
import { notARead } from './sql-reads.ts'
import type { Node } from './sql-tree.ts'

export interface SqlGuardConfig {
  readonly dialect: Dialect
  readonly readOnly: boolean
}

/** All statements of a call together; parsing this much takes some 50 ms, which everybody else waits for. */
const longest = 64 * 1024

/** Lets one statement through (F9), parsed by PostgreSQL's own parser, and with `readOnly` only one that reads. */
export function sqlGuard({ dialect, readOnly }: SqlGuardConfig, refuse: Refuse): Guard {
  const check = async ({ at, text }: Guarded) => {
    const plain = asPostgres(text, dialect)
    if (plain === undefined) {
      const wanted = 'without comments, backslashes, brackets, # and $'
      throw refuse(at, `is not plain SQL that ${dialectNames[dialect]} and the gateway read alike; write it ${wanted}`)
    }
    const [statement, ...others] = await statementsOf(plain, at)
    if (!statement) throw refuse(at, 'has no SQL statement')
    if (others.length > 0) throw refuse(at, `has ${others.length + 1} SQL statements; send one at a time`)
    const reason = readOnly ? notARead(statement, dialect) : beyondData(statement)
    if (reason !== undefined) throw refuse(at, reason)
  }

  const statementsOf = async (text: string, at: string) => {
    try {
      return await parseSql(text)
    } catch (error) {
      throw error instanceof SyntaxProblem
        ? refuse(at, `${error.message}; write one ${dialectNames[dialect]} statement`)
        : error
    }
  }

  return async (values) => {
    const total = values.reduce((length, { text }) => length + text.length, 0)
    if (total > longest) throw refuse(values[0]!.at, `has more than ${longest / 1024} KiB of SQL; send less at a time`)
    for (const value of values) await check(value)
  }
}

/** Where writing is allowed, a statement must still be one that can be seen through and that stays in the database. */
function beyondData(statement: Statement): string | undefined {
  const [[kind, value]] = Object.entries(statement) as [[string, Node]]
  if (kind === 'DoStmt') return 'is a DO block, which may hold any number of statements; send one statement instead'
  if (kind === 'CopyStmt' && (value.filename || value.is_program))
    return "copies to or from the database server's own machine"
  if (kind === 'AlterSystemStmt' || kind === 'LoadStmt') return 'changes the database server itself, not its data'
  return undefined
}
