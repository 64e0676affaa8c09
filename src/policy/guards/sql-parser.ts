import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { jsonValue } from '../../json/parse-json.ts'

/** A parsed statement: an object whose only member is named after its kind and holds the syntax tree node. */
export type Statement = Readonly<Record<string, unknown>>

/** Thrown if the text is not valid SQL. The message never repeats any part of the text. */
export class SyntaxProblem extends Error {}

/** The parts of the WebAssembly module that Toolway uses. The package has no types for the module. */
interface Module {
  lengthBytesUTF8(text: string): number
  stringToUTF8(text: string, pointer: number, length: number): void
  UTF8ToString(pointer: number): string
  getValue(pointer: number, type: 'i32'): number
  _malloc(length: number): number
  _free(pointer: number): void
  _wasm_parse_query_raw(text: number): number
  _wasm_free_parse_result(result: number): void
}

/** Node's types have no WebAssembly. */
declare const WebAssembly: {
  compile(bytes: Uint8Array): Promise<object>
  instantiate(module: object, imports: object): Promise<object>
}

let loading: Promise<Module> | undefined

export async function parseSql(text: string): Promise<readonly Statement[]> {
  loading ??= loadSqlParser()
  const current = loading
  try {
    const module = await current
    // Another statement may have crashed the module while this one waited; if so, use the new instance.
    return current === loading ? parseStatements(module, text) : await parseSql(text)
  } catch (error) {
    if (error instanceof SyntaxProblem) throw error
    // A stack overflow on deep nesting leaves the module's memory inconsistent: load a new instance.
    if (current === loading) loading = undefined
    throw error instanceof RangeError ? new SyntaxProblem('is nested too deeply to be checked') : error
  }
}

/** Compiled once: compiling takes ten times as long as making an instance of it. */
let moduleCode: object | undefined

const compileModule = async () =>
  WebAssembly.compile(await readFile(createRequire(import.meta.url).resolve('libpg-query/wasm/libpg-query.wasm')))

async function loadSqlParser(): Promise<Module> {
  // The package's entry point keeps one instance forever; import the module itself, so that we can replace it.
  // @ts-expect-error The package has no types for it.
  const { default: create } = await import('libpg-query/wasm/libpg-query.js')
  moduleCode ??= await compileModule()
  const compiled = moduleCode
  return create({
    instantiateWasm: async (imports: object, received: (instance: object) => void) =>
      received(await WebAssembly.instantiate(compiled, imports)),
  })
}

/** Offsets in PgQueryParseResult (tree, stderr, error) and in PgQueryError (message, function, file, line, cursor). */
const errorField = 8
const cursorField = 16

function parseStatements(module: Module, text: string): readonly Statement[] {
  const length = module.lengthBytesUTF8(text) + 1
  const input = module._malloc(length)
  module.stringToUTF8(text, input, length)
  const result = module._wasm_parse_query_raw(input)
  try {
    const error = module.getValue(result + errorField, 'i32')
    if (error !== 0) throw syntaxProblem(module.getValue(error + cursorField, 'i32'))
    const tree = jsonValue(module.UTF8ToString(module.getValue(result, 'i32'))) as { stmts?: { stmt: Statement }[] }
    return (tree.stmts ?? []).map(({ stmt }) => stmt)
  } finally {
    module._wasm_free_parse_result(result)
    module._free(input)
  }
}

const syntaxProblem = (cursor: number) =>
  new SyntaxProblem(`has a syntax error${cursor > 0 ? ` at character ${cursor}` : ''}`)

/** A syntax tree node: its fields, or a single member that holds them and is named after the node's kind. */
export type Node = Readonly<Record<string, unknown>>

/** Visits a tree of any depth without recursion. `visit` gets each member that is a node or a list. */
export function walkNodes(tree: Node, visit: (name: string, value: Node | readonly Node[]) => void): void {
  const open: unknown[] = [tree]
  while (open.length > 0) {
    const node = open.pop()
    if (Array.isArray(node)) {
      for (const item of node) open.push(item)
    } else if (typeof node === 'object' && node !== null) {
      for (const [name, value] of Object.entries(node)) {
        if (typeof value !== 'object' || value === null) continue
        visit(name, value)
        open.push(value)
      }
    }
  }
}

/** The names in a list of nodes; `undefined` for `*` and subscripts. */
export function nodeNames(list: unknown): (string | undefined)[] {
  if (!Array.isArray(list)) return []
  return list.map((node: { String?: { sval?: string } }) => node.String && (node.String.sval ?? ''))
}

const nodeNameFields = new Set(['sval', 'aliasname', 'name', 'relname', 'schemaname', 'catalogname', 'colname'])

/** The names of tables, columns, functions and aliases in a statement. Literals are not included. */
export function namesUsed(tree: Node): readonly string[] {
  const found: string[] = []
  walkNodes(tree, (kind, value) => {
    // Skip literals. Like names, their text is in a field `sval`, but that is inside a member also named `sval`.
    if (Array.isArray(value) || kind === 'sval') return
    for (const [field, name] of Object.entries(value as Node)) {
      if (typeof name === 'string' && nodeNameFields.has(field)) found.push(name)
    }
  })
  return found
}
