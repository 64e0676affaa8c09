import { shorten } from '../../lib/message-text.ts'
import type { Guard, GuardedValue, RefuseArgument } from './selector.ts'
import {
  asPostgres,
  type Dialect,
  dialectNames,
  type PlainSql,
  type SqlGuardConfig,
  splitPlain,
  sqlWords,
  unsafeConverted,
} from './sql-dialects.ts'
import { columnsOfFunction, isHarmlessFunction, isHarmlessTable } from './sql-functions.ts'
import { type Node, namesUsed, nodeNames, parseSql, type Statement, SyntaxProblem, walkNodes } from './sql-parser.ts'

/** Max characters in all statements of a call together. Parsing this much blocks the event loop for about 50 ms. */
const maxSql = 64 * 1024

/** A guard that permits a single statement (F9), parsed by PostgreSQL's parser; with `readOnly`, only a read. */
export function createSqlGuard({ dialect, readOnly }: SqlGuardConfig, refuse: RefuseArgument): Guard {
  const check = async ({ at, text }: GuardedValue) => {
    const split = dialect === 'any' ? plainOnly(text, at) : undefined
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
      (split && secondStatement(statement, split)) ?? (readOnly ? notARead(statement, dialect) : beyondData(statement))
    if (reason !== undefined) throw refuse(at, reason)
  }

  const plainOnly = (text: string, at: string): PlainSql => {
    const split = splitPlain(text)
    if (typeof split === 'number')
      throw refuse(at, `is read differently by some databases from character ${split + 1}; ${declareDialect}`)
    if (unsafeConverted(text, split, readOnly))
      throw refuse(
        at,
        `has typographic quotes or semicolons that a character set conversion may turn into plain ones; ${declareDialect}`,
      )
    return split
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
    if (total > maxSql)
      throw refuse(values[0]!.at, `has more than ${maxSql / 1024} KiB of SQL; send a shorter statement`)
    for (const value of values) await check(value)
  }
}

const declareDialect =
  'use plain quotes and comments, without backslashes, back-quotes, brackets, # and $, or ask the operator to set `dialect` for this guard'

/** Words that start another statement after a query in SQL Server, which needs no semicolon between statements. */
const statementStarts = new Set(
  `alter backup begin bulk checkpoint commit create dbcc deallocate declare delete delimiter deny disable drop enable exec
  execute go goto grant if insert kill load merge print raiserror reconfigure restore return revert revoke rollback save
  set setuser shutdown throw truncate update updatetext use waitfor while writetext`.split(/\s+/),
)

/** Finds a name like `delete` in `SELECT 1 delete FROM t`: an alias in PostgreSQL, a new statement in SQL Server. */
function secondStatement(statement: Statement, { code }: PlainSql): string | undefined {
  const unquoted = sqlWords(code)
  for (const name of namesUsed(statement)) {
    const word = name.toLowerCase()
    if (statementStarts.has(word) && unquoted.has(word)) {
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

/** The node kinds that occur in queries. A statement with any other kind, even a new one, does not count as a read. */
const queryNodes = new Set(
  `SelectStmt ResTarget ColumnRef ParamRef A_Const A_Star A_Expr A_ArrayExpr A_Indices A_Indirection String Integer Float
  Boolean BitString List BoolExpr BooleanTest NullTest CaseExpr CaseWhen CoalesceExpr MinMaxExpr FuncCall NamedArgExpr
  SubLink TypeCast TypeName CollateClause RowExpr RangeVar RangeSubselect RangeFunction RangeTableSample RangeTableFunc
  RangeTableFuncCol JoinExpr Alias SortBy WindowDef CommonTableExpr WithClause GroupingFunc GroupingSet SQLValueFunction
  XmlExpr XmlSerialize ColumnDef JsonAggConstructor JsonArgument JsonArrayAgg JsonArrayConstructor
  JsonArrayQueryConstructor JsonBehavior JsonFormat JsonFuncExpr JsonIsPredicate JsonKeyValue JsonObjectAgg
  JsonObjectConstructor JsonOutput JsonParseExpr JsonReturning JsonScalarExpr JsonSerializeExpr JsonTable
  JsonTableColumn JsonTablePathSpec JsonValueExpr CTESearchClause CTECycleClause`.split(/\s+/),
)

const maybePostgres = (dialect: Dialect): boolean => dialect === 'postgres' || dialect === 'any'

const samplings = new Set(['system', 'bernoulli'])

/** Why a statement is not a read, as text that continues "The argument … ". Undefined for a read. */
function notARead(statement: Statement, dialect: Dialect): string | undefined {
  const kind = Object.keys(statement)[0] as string
  if (kind === 'VariableShowStmt') return undefined
  if (kind === 'SelectStmt') return sideEffect(statement, dialect)
  // EXPLAIN ANALYZE runs the query, so check the query.
  if (kind === 'ExplainStmt') return notAQuery((statement.ExplainStmt as Node).query as Node, dialect)
  return `is ${spellStatement(kind)}, but only read-only statements are allowed; use SELECT`
}

const notAQuery = (query: Node, dialect: Dialect) =>
  'SelectStmt' in query ? sideEffect(query, dialect) : 'explains something other than a SELECT; use EXPLAIN SELECT'

function sideEffect(query: Node, dialect: Dialect): string | undefined {
  let reason: string | undefined
  const functions: Node[] = []
  const columns: Node[] = []
  walkNodes(query, (name, value) => {
    const node = value as Node
    reason ??= nodeSideEffect(name, node, dialect)
    if (name === 'RangeFunction') functions.push(node)
    if (name === 'ColumnRef') columns.push(node)
  })
  if (reason !== undefined || !maybePostgres(dialect)) return reason
  return disguisedCall(functions.map(rangeSource), columns)
}

function nodeSideEffect(name: string, node: Node, dialect: Dialect): string | undefined {
  switch (name) {
    case 'intoClause':
      return 'has SELECT INTO, which creates a table; remove INTO'
    case 'lockingClause':
      return 'locks rows; remove FOR UPDATE and FOR SHARE'
    case 'FuncCall':
      return sideEffectOfCall(nodeNames(node.funcname) as string[], dialect)
    case 'ColumnRef':
      return dialect === 'any' ? sequenceColumn(node) : undefined
    case 'RangeVar':
      return sideEffectOfTable(node.relname as string, dialect)
    case 'typeName':
    case 'TypeName':
      return dialect === 'postgres' ? undefined : sideEffectOfType(node, dialect)
    case 'A_Indirection': {
      const member = maybePostgres(dialect) ? disguisedMember(node) : undefined
      return member && `has "(…).${shortName(member)}", which may call a function; use (…).* or a subquery in FROM`
    }
    case 'A_Expr':
      return foreignOperator(node.name)
    case 'SubLink':
      return foreignOperator(node.operName)
    case 'SortBy':
      return foreignOperator(node.useOp)
    case 'RangeTableSample':
      return samplings.has(nodeNames(node.method).join('.'))
        ? undefined
        : 'uses a sampling method other than SYSTEM and BERNOULLI'
    default:
      return /^[A-Z]/.test(name) && !queryNodes.has(name)
        ? `contains ${spellStatement(name)}, but only read-only statements are allowed`
        : undefined
  }
}

function sideEffectOfCall(called: readonly string[], dialect: Dialect): string | undefined {
  if (isHarmlessFunction(called, dialect)) return undefined
  return `calls ${shortName(called.join('.'))}, which is not a built-in function known to have no side effects; remove it`
}

/** Finds a pseudo-column such as `orders_id.nextval`, which advances a sequence in Oracle and Snowflake. */
function sequenceColumn({ fields }: Node): string | undefined {
  const names = nodeNames(fields)
  const column = names.at(-1)?.toLowerCase()
  if (names.length < 2 || (column !== 'nextval' && column !== 'currval')) return undefined
  return `has "${shortName(names.join('.'))}", which uses a sequence in some databases; remove it`
}

function sideEffectOfTable(name: string, dialect: Dialect): string | undefined {
  if (isHarmlessTable(name, dialect)) return undefined
  return `reads ${shortName(name)}, which may do more than read the database's tables; remove it`
}

/** `name(…) 'x'` is a typed literal in PostgreSQL, but elsewhere a call with a column alias, so check it as a call. */
function sideEffectOfType({ names, typmods }: Node, dialect: Dialect): string | undefined {
  const named = nodeNames(names) as string[]
  return typmods === undefined || named[0] === 'pg_catalog' ? undefined : sideEffectOfCall(named, dialect)
}

/** Returns a reason to refuse an operator outside of pg_catalog, because it may call an unknown function. */
function foreignOperator(name: unknown): string | undefined {
  const [schema] = nodeNames(name)
  const foreign = nodeNames(name).length > 1 && schema !== 'pg_catalog'
  return foreign ? 'uses an operator from another schema; write the operator without OPERATOR(…)' : undefined
}

/** Converts a kind of statement to SQL: `InsertStmt` → INSERT, `CreateTableAsStmt` → CREATE TABLE AS. */
const spellStatement = (kind: string) =>
  kind
    .replace(/Stmt$/, '')
    .replace(/(?<=[a-z])(?=[A-Z])/g, ' ')
    .toUpperCase()

/** Truncates a name for use in an error message. */
const shortName = (name: string) => shorten(name, 64)

interface RangeSource {
  /** Undefined if PostgreSQL derives it from an expression: `coalesce`, `greatest`, or the name of a type. */
  readonly name: string | undefined
  readonly columns: ReadonlySet<string | undefined>
}

/**
 * Finds a disguised call. If `x` is a function in FROM that returns a scalar, PostgreSQL reads `x.pg_read_file` as
 * pg_read_file(x). So the name must be a column that the statement or the function declares. The columns of tables are
 * unknown, so `t.name` passes: only functions that take t's rows can be called with it, and no built-in one of them has
 * side effects.
 */
function disguisedCall(sources: readonly RangeSource[], columns: readonly Node[]): string | undefined {
  for (const { fields } of columns) {
    const [column, of] = nodeNames(fields).reverse()
    if (column === undefined || of === undefined) continue
    const text = `has "${shortName(`${of}.${column}`)}", which may call a function`
    if (sources.some(({ name, columns }) => name === of && !columns.has(column)))
      return `${text}; list the function's columns: AS x(column, …)`
    if (sources.some(({ name }) => name === undefined))
      return `${text}, because an expression in FROM has no alias; add one: AS x(column)`
  }
  return undefined
}

/** Finds a disguised call `(…).name`, unless the value comes from a function that declares this column. */
function disguisedMember({ arg, indirection }: Node): string | undefined {
  const called = functionName(arg as Node)
  const known = called === undefined ? [] : (columnsOfFunction(called) ?? [])
  return nodeNames(indirection).find((name) => name !== undefined && !known.includes(name))
}

function rangeSource({ functions, alias, coldeflist, ordinality }: Node): RangeSource {
  const [first] = functions as readonly { List: { items: readonly Node[] } }[]
  const called = functionName(first?.List.items[0])
  const { aliasname, colnames } = (alias ?? {}) as { aliasname?: string; colnames?: unknown }
  const name = aliasname ?? called
  const declared = [...nodeNames(colnames), ...definedIn(coldeflist)]
  const own = called === undefined ? undefined : columnsOfFunction(called)
  // A function without declared columns has one column, with the name of the function or its alias.
  const columns = declared.length > 0 ? declared : (own ?? [name])
  return { name, columns: new Set(ordinality ? [...columns, 'ordinality'] : columns) }
}

const definedIn = (list: unknown) =>
  Array.isArray(list) ? list.map((node: { ColumnDef?: { colname?: string } }) => node.ColumnDef?.colname) : []

/** Only for calls by name: what EXTRACT(… FROM …) or TRIM(…) calls differs between versions of PostgreSQL. */
function functionName(node: Node | undefined): string | undefined {
  const { funcname, funcformat } = (node?.FuncCall ?? {}) as Node
  return funcformat === 'COERCE_SQL_SYNTAX' ? undefined : nodeNames(funcname).at(-1)
}
