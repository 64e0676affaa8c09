import { columnsOf } from './sql-functions.ts'
import { type Node, namesIn } from './sql-tree.ts'

/** A function in FROM: how the statement calls it, and which of its columns are known to be columns. */
interface Source {
  readonly name: string
  readonly columns: ReadonlySet<string>
}

/**
 * Finds calls in disguise. Where `x` is a function in FROM that gives a plain value, PostgreSQL reads `x.pg_read_file`
 * as pg_read_file(x), so such a name must be one of the columns that the statement or the function itself declares.
 */
export function disguisedCall(functions: readonly Node[], columns: readonly Node[]): string | undefined {
  const sources = functions.map(sourceOf)
  for (const { fields } of columns) {
    const [column, of] = namesIn(fields).reverse()
    if (column === undefined || of === undefined) continue
    const named = sources.filter(({ name }) => name === of)
    if (named.some(({ columns }) => !columns.has(column))) return `${of}.${column}`
  }
  return undefined
}

/** `(…).name` is a call in disguise too, unless the value comes from a function with columns of its own. */
export function disguisedMember({ arg, indirection }: Node): string | undefined {
  const called = functionName(arg as Node)
  const known = called === undefined ? [] : (columnsOf(called) ?? [])
  return namesIn(indirection).find((name) => name !== undefined && !known.includes(name))
}

function sourceOf({ functions, alias, coldeflist, ordinality }: Node): Source {
  const [first] = functions as readonly { List: { items: readonly Node[] } }[]
  const called = functionName(first?.List.items[0]) ?? ''
  const { aliasname, colnames } = (alias ?? {}) as { aliasname?: string; colnames?: unknown }
  const name = aliasname ?? called
  const declared = [...namesIn(colnames), ...definedIn(coldeflist)].filter((column) => column !== undefined)
  // A plain value that declares nothing is a column of the name that it goes by.
  const columns = declared.length > 0 ? declared : (columnsOf(called) ?? [name])
  return { name, columns: new Set(ordinality ? [...columns, 'ordinality'] : columns) }
}

const definedIn = (list: unknown) =>
  Array.isArray(list) ? list.map((node: { ColumnDef?: { colname?: string } }) => node.ColumnDef?.colname) : []

/** The last part of a called function's name. */
const functionName = (node: Node | undefined): string | undefined =>
  namesIn((node?.FuncCall as Node | undefined)?.funcname).at(-1)
