import type { Guard, GuardedValue, RefuseArgument } from './selector.ts'
import {
  asPostgres,
  codeWords,
  dialectNames,
  disagreeing,
  hasOddSpace,
  type SqlGuardConfig,
  unsafeConverted,
} from './sql-dialects.ts'
import { type Node, namesUsed, parseSql, type Statement, SyntaxProblem } from './sql-parser.ts'
import { notARead } from './sql-reads.ts'

/** Max characters in all statements of a call together. Parsing this much blocks the event loop for about 50 ms. */
const maxLength = 64 * 1024

/** A guard that permits a single statement (F9), parsed by PostgreSQL's parser; with `readOnly`, only a read. */
export function sqlGuard({ dialect, readOnly }: SqlGuardConfig, refuse: RefuseArgument): Guard {
  const check = async ({ at, text }: GuardedValue) => {
    const ambiguity = dialect === 'any' ? ambiguous(text, readOnly) : undefined
    if (ambiguity !== undefined) throw refuse(at, `${ambiguity}; ${declare}`)
    const plain = dialect === 'mysql' || dialect === 'sqlite' ? asPostgres(text, dialect, readOnly) : text
    if (plain === undefined) {
      const wanted =
        'close all quotes and comments, and do not use executable comments, brackets, #, $ or -- without a space'
      throw refuse(at, `is SQL that ${dialectNames[dialect]} and the gateway may parse differently; ${wanted}`)
    }
    const [statement, ...others] = await statementsOf(plain, at)
    if (!statement) throw refuse(at, 'contains no SQL statement')
    if (others.length > 0) throw refuse(at, `contains ${others.length + 1} SQL statements; send one at a time`)
    const reason =
      (dialect === 'any' ? secondStatement(statement, text) : undefined) ??
      (readOnly ? notARead(statement, dialect) : beyondData(statement))
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
    if (total > maxLength)
      throw refuse(values[0]!.at, `has more than ${maxLength / 1024} KiB of SQL; send a shorter statement`)
    for (const value of values) await check(value)
  }
}

const declare =
  'use plain single quotes, avoid backslashes and nested or unusual comments, or ask the operator to set the dialect for this guard'

/** Why databases may interpret the text differently. Used if the dialect is not known. */
function ambiguous(text: string, readOnly: boolean): string | undefined {
  const odd = disagreeing(text)
  if (odd !== undefined) return `has quotes or comments that end at different positions in ${odd} and PostgreSQL`
  if (hasOddSpace(text)) return 'has invisible or unusual spaces between its words'
  if (unsafeConverted(text, readOnly))
    return 'has typographic quotes or semicolons that a character set conversion may turn into plain ones'
  return undefined
}

/** Words that start another statement after a query in SQL Server, which needs no semicolon between statements. */
const starts = new Set(
  `alter backup begin bulk checkpoint commit create dbcc deallocate declare delete delimiter deny disable drop enable exec
  execute go goto grant if insert kill load merge print raiserror reconfigure restore return revert revoke rollback save
  set setuser shutdown throw truncate update updatetext use waitfor while writetext`.split(/\s+/),
)

/** Finds a name like `delete` in `SELECT 1 delete FROM t`: an alias in PostgreSQL, a new statement in SQL Server. */
function secondStatement(statement: Statement, text: string): string | undefined {
  const unquoted = codeWords(text)
  for (const name of namesUsed(statement)) {
    const word = name.toLowerCase()
    if (starts.has(word) && unquoted.has(word)) {
      return `has the name ${word}, which starts another statement in SQL Server; put it in double quotes`
    }
  }
  return undefined
}

/** Why a statement is refused even with write access: it cannot be analyzed, or it reaches beyond the database. */
function beyondData(statement: Statement): string | undefined {
  const [[kind, value]] = Object.entries(statement) as [[string, Node]]
  if (kind === 'DoStmt') return 'is a DO block, which may contain any number of statements; send one statement instead'
  if (kind === 'CopyStmt' && (value.filename || value.is_program))
    return "copies files or programs on the database server's machine"
  if (kind === 'AlterSystemStmt' || kind === 'LoadStmt') return 'changes the database server, not its data'
  return undefined
}
