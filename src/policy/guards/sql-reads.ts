import { disguisedCall, disguisedMember } from './sql-calls.ts'
import type { Dialect } from './sql-dialects.ts'
import { isHarmless } from './sql-functions.ts'
import type { Statement } from './sql-parser.ts'
import { type Node, namesIn, walk } from './sql-tree.ts'

/** Kinds of nodes that a query is made of. A kind that is not here, also one of a later PostgreSQL, is no read. */
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

/** Why a statement is more than a read, to go on from "The argument … ", or `undefined` for a read. */
export function notARead(statement: Statement, dialect: Dialect): string | undefined {
  const kind = Object.keys(statement)[0] as string
  if (kind === 'VariableShowStmt') return undefined
  if (kind === 'SelectStmt') return sideEffect(statement, dialect)
  // EXPLAIN ANALYZE runs the query, which is no more than the query itself may do.
  if (kind === 'ExplainStmt') return notAQuery((statement.ExplainStmt as Node).query as Node, dialect)
  return `is ${spell(kind)}, but only reading is allowed here; use SELECT`
}

const notAQuery = (query: Node, dialect: Dialect) =>
  'SelectStmt' in query ? sideEffect(query, dialect) : 'explains something else than a SELECT; use EXPLAIN SELECT'

function sideEffect(query: Node, dialect: Dialect): string | undefined {
  let reason: string | undefined
  const functions: Node[] = []
  const columns: Node[] = []
  walk(query, (name, value) => {
    const node = value as Node
    reason ??= nodeSideEffect(name, node, dialect)
    if (name === 'RangeFunction') functions.push(node)
    if (name === 'ColumnRef') columns.push(node)
  })
  if (reason !== undefined || !maybePostgres(dialect)) return reason
  const call = disguisedCall(functions, columns)
  return call && `has "${short(call)}", which may call a function; list the columns of the function: AS x(column, …)`
}

function nodeSideEffect(name: string, node: Node, dialect: Dialect): string | undefined {
  switch (name) {
    case 'intoClause':
      return 'has SELECT INTO, which creates a table; leave INTO out'
    case 'lockingClause':
      return 'locks rows; leave FOR UPDATE and FOR SHARE out'
    case 'FuncCall':
      return sideEffectOfCall(namesIn(node.funcname) as string[], dialect)
    case 'typeName':
    case 'TypeName':
      return dialect === 'postgres' ? undefined : sideEffectOfType(node, dialect)
    case 'A_Indirection': {
      const member = maybePostgres(dialect) ? disguisedMember(node) : undefined
      return member && `has "(…).${short(member)}", which may call a function; use (…).* or a subquery in FROM`
    }
    case 'A_Expr':
      return foreignOperator(node.name)
    case 'SubLink':
      return foreignOperator(node.operName)
    case 'SortBy':
      return foreignOperator(node.useOp)
    case 'RangeTableSample':
      return samplings.has(namesIn(node.method).join('.'))
        ? undefined
        : 'samples with a method other than SYSTEM and BERNOULLI'
    default:
      return /^[A-Z]/.test(name) && !queryNodes.has(name)
        ? `contains ${spell(name)}, but only reading is allowed here`
        : undefined
  }
}

function sideEffectOfCall(called: readonly string[], dialect: Dialect): string | undefined {
  if (isHarmless(called, dialect)) return undefined
  return `calls ${short(called.join('.'))}, which is not a built-in function known to have no side effects; leave it out`
}

/** `name(…) 'x'` is a literal of a type to PostgreSQL; to others it is a call, and the text is what its column is named. */
function sideEffectOfType({ names, typmods }: Node, dialect: Dialect): string | undefined {
  const named = namesIn(names) as string[]
  return typmods === undefined || named[0] === 'pg_catalog' ? undefined : sideEffectOfCall(named, dialect)
}

/** Operators outside PostgreSQL's own schema are functions that we do not know. */
function foreignOperator(name: unknown): string | undefined {
  const [schema] = namesIn(name)
  const foreign = namesIn(name).length > 1 && schema !== 'pg_catalog'
  return foreign ? 'uses an operator of another schema; write the operator without OPERATOR(…)' : undefined
}

/** `InsertStmt` as INSERT, `CreateTableAsStmt` as CREATE TABLE AS. */
const spell = (kind: string) =>
  kind
    .replace(/Stmt$/, '')
    .replace(/(?<=[a-z])(?=[A-Z])/g, ' ')
    .toUpperCase()

/** Names are repeated so that they can be found and mended, but no more of them than a name needs. */
const short = (name: string) => (name.length > 64 ? `${name.slice(0, 64)}…` : name)
