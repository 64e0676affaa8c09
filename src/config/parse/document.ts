import { extname } from 'node:path'
import { type ConfigProblem, problemAt } from '../problems.ts'
import { type BranchNode, branch, type SourceFile } from '../tree.ts'
import { type Parsed, RejectedDocument } from './parsed.ts'

export type Syntax = 'yaml' | 'json' | 'toml'

const byExtension: Readonly<Record<string, Syntax>> = {
  '.yaml': 'yaml',
  '.yml': 'yaml',
  '.json': 'json',
  '.jsonc': 'json',
  '.json5': 'json',
  '.toml': 'toml',
}

/** Determines the syntax from the extension or, failing that, from the start: JSON begins with `{`, `//` or `/*`. */
export function syntaxOf({ path, text }: SourceFile): Syntax {
  return byExtension[extname(path).toLowerCase()] ?? (/^\s*(\/[/*]|\{)/.test(text) ? 'json' : 'yaml')
}

/** Loads only the parser that is needed, so that Toolway starts faster. */
async function parserFor(syntax: Syntax): Promise<(file: SourceFile) => Parsed> {
  if (syntax === 'json') return (await import('./json.ts')).parseJson
  if (syntax === 'toml') return (await import('./toml.ts')).parseToml
  return (await import('./yaml.ts')).parseYaml
}

const names: Readonly<Record<Syntax, string>> = { yaml: 'YAML', json: 'JSON', toml: 'TOML' }

/** Parses a document. An empty one, and one with only `null` or comments, yields an empty object. */
export async function parseDocument(
  file: SourceFile,
): Promise<{ tree: BranchNode; isEmpty?: boolean; problems: readonly ConfigProblem[] }> {
  const start = { file, offset: 0, key: '' }
  const syntax = syntaxOf(file)
  const parse = await parserFor(syntax)
  const { tree, errors } = guarded(() => parse(file))
  const problems = errors.map(({ message, offset, key }) =>
    problemAt({ file, offset, key: key ?? '' }, key === undefined ? `not valid ${names[syntax]}: ${message}` : message),
  )
  if (problems.length > 0) return { tree: branch(start), problems }
  const isEmpty = file.text.trim() === '' || tree === undefined || (tree.kind === 'leaf' && tree.value === null)
  if (isEmpty) return { tree: branch(start), isEmpty, problems }
  if (tree.kind === 'branch') return { tree, problems }
  const found = tree.kind === 'list' ? 'a list' : 'a single value'
  const message = `expected keys such as mcpServers at the top, found ${found}`
  return { tree: branch(start), problems: [problemAt(tree.at, message)] }
}

function guarded(parse: () => Parsed): Parsed {
  try {
    return parse()
  } catch (thrown) {
    if (thrown instanceof RejectedDocument) return { errors: [{ message: thrown.message, offset: thrown.offset }] }
    if (thrown instanceof RangeError) return { errors: [{ message: 'nested too deep', offset: 0 }] }
    throw thrown
  }
}
