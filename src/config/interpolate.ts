import { resolve } from 'node:path'
import { inHome } from './absolute-paths.ts'
import { type ConfigProblem, problemAt } from './problems.ts'
import { readSecretFile } from './secret-file.ts'
import { type Branch, branch, keyPath, type Leaf, type Path, type Tree } from './tree.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Text with its variables filled in, or why that is impossible. */
export type Expansion = { readonly text: string } | { readonly fault: string; readonly unset?: string }

/** What stands in a file that is named by `${file:PATH}`. */
type ReadFile = (path: string) => { readonly text: string } | { readonly fault: string }

const variable = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

/**
 * Fills in `${VAR}`, `${VAR:-default}`, `${env:VAR}` and, where files can be read, `${file:PATH}`; once: what a
 * variable or a file holds is never looked at again.
 */
export function expand(text: string, env: Environment, readFile?: ReadFile): Expansion {
  let expanded = ''
  let from = 0
  for (;;) {
    const start = text.indexOf('${', from)
    if (start < 0) return { text: expanded + text.slice(from) }
    if (start > from && text[start - 1] === '$') {
      expanded += `${text.slice(from, start - 1)}\${`
      from = start + 2
      continue
    }
    const end = text.indexOf('}', start)
    if (end < 0) return { fault: 'a ${ has no closing }; write $${ if the text itself is meant' }
    const found = meaning(text.slice(start + 2, end), env, readFile)
    if ('fault' in found) return found
    expanded += text.slice(from, start) + found.text
    from = end + 1
  }
}

/** What one `${…}` stands for. */
function meaning(body: string, env: Environment, readFile: ReadFile | undefined): Expansion {
  const path = /^file:(.+)$/s.exec(body)?.[1]
  if (path !== undefined && readFile) return readFile(path)
  const [, name, fallback] = variable.exec(body) ?? []
  if (name === undefined || fallback?.includes('${')) return { fault: foreign(body) }
  const value = Object.hasOwn(env, name) ? env[name] : undefined
  if (value === undefined && fallback === undefined) {
    const fault = `the variable ${name} is not set; set it, or write \${${name}:-default}`
    return { fault, unset: name }
  }
  return { text: fallback !== undefined && !value ? fallback : (value as string) }
}

function foreign(body: string): string {
  const written = `\${${body}}`
  if (body.startsWith('input:'))
    return `${written} is asked for by an editor; write a variable such as \${NAME} instead`
  return `${written} is not a variable; write \${NAME}, \${NAME:-default}, \${env:NAME} or \${file:PATH}, or $\${ if the text itself is meant`
}

/** A document with its variables filled in. */
interface Interpolated {
  readonly tree: Branch
  readonly problems: readonly ConfigProblem[]
  /** The files that were read for `${file:PATH}`: a change of one may mean another configuration. */
  readonly files: readonly string[]
}

/** Fills in the variables of a document; those of a disabled section need not be set. */
export function interpolate(tree: Branch, env: Environment, home = ''): Interpolated {
  const problems: ConfigProblem[] = []
  const files = new Set<string>()

  const fill = (leaf: Leaf, path: Path, disabled: boolean): Leaf => {
    if (typeof leaf.value !== 'string') return leaf
    const finish = leaf.finish ?? ((text: string) => text)
    const expansion = expand(leaf.value, env, (named) => {
      const file = inHome(named, home) ?? resolve(leaf.at.file.path, '..', named)
      files.add(file)
      return readSecretFile(file)
    })
    if ('text' in expansion) {
      return { ...leaf, value: finish(expansion.text), ...(expansion.text !== leaf.value && { variables: 'filled' }) }
    }
    if (disabled) return { ...leaf, variables: 'left' }
    problems.push(problemAt(leaf.at, expansion.fault, { key: keyPath(path) }))
    // Nothing more can be said about a value that is not known.
    return { ...leaf, variables: 'left' }
  }

  const walk = (part: Tree, path: Path, disabled: boolean): Tree => {
    if (part.kind === 'leaf') return fill(part, path, disabled)
    if (part.kind === 'list')
      return { ...part, items: part.items.map((item, index) => walk(item, [...path, index], disabled)) }
    const off = disabled || isDisabled(part, env)
    const members = [...part.members].map(
      ([key, { at, value }]) => [key, { at, value: walk(value, [...path, key], off) }] as const,
    )
    return branch(part.at, members)
  }

  return { tree: walk(tree, [], false) as Branch, problems, files: [...files] }
}

/** Whether a section says of itself that it is not in use. */
export function isDisabled(part: Tree, env: Environment = {}): boolean {
  if (part.kind !== 'branch') return false
  const says = (key: string, wanted: boolean) => {
    const value = part.members.get(key)?.value
    if (value?.kind !== 'leaf') return false
    const expansion = typeof value.value === 'string' ? expand(value.value, env) : { text: String(value.value) }
    if (!('text' in expansion)) return false
    return (value.finish?.(expansion.text) ?? expansion.text) === String(wanted)
  }
  return says('disabled', true) || says('enabled', false)
}
