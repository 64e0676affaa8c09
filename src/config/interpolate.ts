import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { isSecretName } from '../core/secret-name.ts'
import { inHome } from './paths.ts'
import { type ConfigProblem, problemAt } from './problems.ts'
import { type BranchNode, branch, type ConfigTree, keyPath, type LeafNode, type Path } from './tree.ts'

export type EnvVars = Readonly<Record<string, string | undefined>>

/** Text with its variables filled in, or why that is impossible. */
type Expansion = { readonly text: string } | { readonly fault: string; readonly unset?: string }

type Found = { readonly text: string } | { readonly fault: string }

/** Where else than in the environment values come from; what is left out is not understood. */
interface Providers {
  /** What stands in a file that is named by `${file:PATH}`. */
  file?(path: string): Found
  /** What a command prints that is named by `${exec:COMMAND}`. */
  exec?(command: string): Found
}

const variable = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

/**
 * Fills in `${VAR}`, `${VAR:-default}`, `${env:VAR}` and, where there are such, `${file:PATH}` and `${exec:COMMAND}`;
 * once: what a variable, a file or a command says is never looked at again.
 */
export function expand(text: string, env: EnvVars, providers: Providers = {}): Expansion {
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
    if (end < 0) return { fault: 'a ${ has no closing }; write $${ for the literal text' }
    const found = meaning(text.slice(start + 2, end), env, providers)
    if ('fault' in found) return found
    expanded += text.slice(from, start) + found.text
    from = end + 1
  }
}

/** What stands between the braces of each `${…}` in a text. */
export const referencesIn = (text: string): string[] =>
  [...text.matchAll(/(?<!\$)\$\{([^}]*)\}/g)].map(([, body = '']) => body)

/** The variable that one means; undefined where it means something else. */
export const variableOf = (body: string): string | undefined => variable.exec(body)?.[1]

/** What one `${…}` stands for. */
function meaning(body: string, env: EnvVars, providers: Providers): Expansion {
  const [, scheme, named = ''] = /^(file|exec):(.+)$/s.exec(body) ?? []
  const provider = scheme === undefined ? undefined : providers[scheme as keyof Providers]
  if (provider) return provider(named)
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
  // What stands in for a variable may be the secret itself.
  const written = `\${${body.replace(/:-.*/s, ':-…')}}`
  if (body.startsWith('input:')) return `${written} is a prompt of an editor; write a variable such as \${NAME} instead`
  return `${written} is not a variable; write \${NAME}, \${NAME:-default}, \${env:NAME}, \${file:PATH} or \${exec:COMMAND}, or $\${ for the literal text`
}

/** A document with its variables filled in. */
interface Interpolated {
  readonly tree: BranchNode
  readonly problems: readonly ConfigProblem[]
  /** The files that were read for `${file:PATH}`: a change of one may mean another configuration. */
  readonly files: readonly string[]
  /** What files, commands and variables with such names gave: none of it is to be written down anywhere. */
  readonly secrets: readonly string[]
}

/** What commands printed, by what stands in the configuration. */
export type RunCommand = (line: string, file: string) => Found

/** Fills in the variables of a document; those of a disabled section need not be set. */
export function interpolate(tree: BranchNode, env: EnvVars, home = '', run?: RunCommand): Interpolated {
  const problems: ConfigProblem[] = []
  const files = new Set<string>()
  const secrets = new Set<string>()
  const secret = (found: Found): Found => {
    if ('text' in found) secrets.add(found.text)
    return found
  }

  const fill = (leaf: LeafNode, path: Path, disabled: boolean): LeafNode => {
    if (typeof leaf.value !== 'string') return leaf
    const finish = leaf.finish ?? ((text: string) => text)
    const expansion = expand(leaf.value, env, {
      file(named) {
        const file = inHome(named, home) ?? resolve(leaf.at.file.path, '..', named)
        files.add(file)
        return secret(readSecretFile(file))
      },
      ...(run && !disabled && { exec: (line) => secret(run(line, leaf.at.file.path)) }),
    })
    if ('text' in expansion) {
      for (const name of referencesIn(leaf.value).map(variableOf)) {
        if (name !== undefined && isSecretName(name) && env[name]) secrets.add(env[name])
      }
      return { ...leaf, value: finish(expansion.text), ...(expansion.text !== leaf.value && { variables: 'filled' }) }
    }
    if (disabled) return { ...leaf, variables: 'left' }
    problems.push(problemAt(leaf.at, expansion.fault, { key: keyPath(path) }))
    // Nothing more can be said about a value that is not known.
    return { ...leaf, variables: 'left' }
  }

  const walk = (part: ConfigTree, path: Path, disabled: boolean): ConfigTree => {
    if (part.kind === 'leaf') return fill(part, path, disabled)
    if (part.kind === 'list')
      return { ...part, items: part.items.map((item, index) => walk(item, [...path, index], disabled)) }
    const off = disabled || isDisabled(part, env)
    const members = [...part.members].map(
      ([key, { at, value }]) => [key, { at, value: walk(value, [...path, key], off) }] as const,
    )
    return branch(part.at, members)
  }

  return { tree: walk(tree, [], false) as BranchNode, problems, files: [...files], secrets: [...secrets] }
}

/** Whether a section says of itself that it is not in use. */
export function isDisabled(part: ConfigTree, env: EnvVars = {}): boolean {
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

/** Longer than any key or certificate: whatever is larger was named by mistake. */
const maxBytes = 64 * 1024

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  ENOTDIR: 'no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'this symbolic link points to itself',
}

/**
 * Reads a secret that has a file to itself, without the line break at its end. What others on this machine could read
 * is no secret, so such a file is refused; what is wrong never says a word of the content.
 */
export function readSecretFile(path: string): { readonly text: string } | { readonly fault: string } {
  let descriptor: number
  try {
    // A pipe would never open otherwise.
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code ?? ''
    return { fault: `the file ${path} cannot be read: ${reasons[code] ?? code}` }
  }
  try {
    const found = fstatSync(descriptor)
    if (!found.isFile()) return { fault: `${path} is not a regular file` }
    if (found.size > maxBytes)
      return { fault: `the file ${path} is larger than 64 KiB, which is too long for a secret` }
    if (process.platform !== 'win32' && (found.mode & 0o077) !== 0) {
      const mode = (found.mode & 0o777).toString(8)
      return { fault: `the file ${path} is readable by others (mode ${mode}); run chmod 600 on it` }
    }
    const text = readFileSync(descriptor, 'utf8').replace(/\r?\n$/, '')
    return text === '' ? { fault: `the file ${path} is empty` } : { text }
  } finally {
    closeSync(descriptor)
  }
}
