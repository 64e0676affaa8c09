import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import { branch, type ConfigTree, keyPath, leaf, type Path, type SourceFile, withKeyAt } from '../tree.ts'
import { createBounds, type Parsed, type SyntaxFault } from './parsed.ts'

const sentences: Readonly<Record<string, string>> = {
  InvalidSymbol: 'this is not a value; text needs double quotes',
  InvalidNumberFormat: 'this is not a number',
  PropertyNameExpected: 'a key in double quotes is expected here',
  ValueExpected: 'a value is expected here',
  ColonExpected: 'a colon is expected here',
  CommaExpected: 'a comma is expected here',
  CloseBraceExpected: 'a closing } is missing',
  CloseBracketExpected: 'a closing ] is missing',
  EndOfFileExpected: 'unexpected text after the end of the document',
  InvalidCommentToken: 'this comment is not valid',
  UnexpectedEndOfComment: 'a comment is not closed',
  UnexpectedEndOfString: 'a string is not closed',
  UnexpectedEndOfNumber: 'a number is not complete',
  InvalidUnicode: 'this is not a valid \\u escape',
  InvalidEscapeCharacter: 'this is not a valid escape',
  InvalidCharacter: 'a control character must be escaped',
}

/** Parses JSON with comments and trailing commas. */
export function parseJson(file: SourceFile): Parsed {
  const parseErrors: ParseError[] = []
  const root = parseTree(file.text, parseErrors, { allowTrailingComma: true, allowEmptyContent: true })
  // A single mistake can cause several parse errors; report only the first, because the others are often misleading.
  const first = parseErrors[0]
  if (first)
    return {
      errors: [{ message: sentences[printParseErrorCode(first.error)] ?? 'unexpected text', offset: first.offset }],
    }
  if (!root) return { errors: [] }
  const errors: SyntaxFault[] = []
  const check = createBounds()

  const build = (node: Node, path: Path): ConfigTree => {
    check(path, node.offset)
    const at = { file, offset: node.offset, key: keyPath(path) }
    if (node.type === 'array')
      return { kind: 'list', at, items: (node.children ?? []).map((item, index) => build(item, [...path, index])) }
    if (node.type !== 'object') return leaf(at, node.value, file.text.slice(node.offset, node.offset + node.length))
    const members = new Map<string, ConfigTree>()
    for (const property of node.children ?? []) {
      const [keyNode, valueNode] = property.children ?? []
      if (!keyNode || !valueNode) continue
      const key = String(keyNode.value)
      const here = [...path, key]
      const keyAt = { file, offset: keyNode.offset, key: keyPath(here) }
      if (members.has(key)) errors.push({ message: 'duplicate key', offset: keyNode.offset, key: keyAt.key })
      members.set(key, withKeyAt(build(valueNode, here), keyAt))
    }
    return branch(at, members)
  }

  return { tree: build(root, []), errors }
}
