import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { isSecretName } from '../core/secret-name.ts'
import { inHome } from './paths.ts'
import { type ConfigProblem, problemAt } from './problems.ts'
import {
  type BranchNode,
  type ConfigTree,
  find,
  keyPath,
  type LeafNode,
  leavesIn,
  mapMembers,
  type Path,
} from './tree.ts'

export type EnvVars = Readonly<Record<string, string | undefined>>

type Found =
  /** `unread` marks a stand-in for a value that was not read. */
  { readonly text: string; readonly unread?: true } | { readonly fault: string }

/** Sources for values other than variables. A reference whose scheme has no provider is reported as invalid. */
interface Providers {
  file?(path: string): Found
  exec?(command: string): Found
}

const variable = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s

/**
 * Expands `${VAR}`, `${VAR:-default}`, `${env:VAR}` and, with a provider, `${file:PATH}` and `${exec:COMMAND}`.
 * Expanded values are not expanded again.
 */
export function expand(text: string, env: EnvVars, providers: Providers = {}): Found {
  let fault: string | undefined
  const expanded = text.replace(/\$\$\{|\$\{([^}]*)(\}?)/g, (_, body?: string, end?: string) => {
    if (fault !== undefined) return ''
    if (body === undefined) return '${'
    const found = end ? meaning(body, env, providers) : unclosed
    if ('text' in found) return found.text
    fault = found.fault
    return ''
  })
  return fault === undefined ? { text: expanded } : { fault }
}

const unclosed = { fault: 'a ${ has no closing }; write $${ for the literal text' }

/** Escapes `${`, so that the text is taken literally. */
export const escapeVariables = (text: string): string => text.replaceAll('${', () => '$${')

/** The text that an escaped one stands for. */
export const unescapeVariables = (text: string): string => text.replaceAll('$${', () => '${')

/** References that read something other than a variable. */
export type ReferenceScheme = 'file' | 'exec'

/** Escapes references with these schemes, so that they are taken literally. */
export const escapeSchemes = (text: string, schemes: readonly ReferenceScheme[]): string =>
  text.replace(schemePattern, (written, scheme: ReferenceScheme) =>
    schemes.includes(scheme) ? `$${written}` : written,
  )

const schemePattern = /(?<!\$)\$\{(file|exec):/g

/** The text between the braces of each `${…}`. */
export const referencesIn = (text: string): string[] =>
  [...text.matchAll(/(?<!\$)\$\{([^}]*)\}/g)].map(([, body = '']) => body)

/** The variable named by a reference; undefined for `file:`, `exec:` and invalid references. */
export const variableOf = (body: string): string | undefined => variable.exec(body)?.[1]

/** A reference such as `${TOKEN}`, without its default, in an entry whose command and URLs are the target. */
export interface NewReference {
  readonly key: string
  readonly target: string
  readonly reference: string
}

export const referenceText = ({ key, target, reference }: NewReference): string =>
  `${reference} for ${key}${target && ` (${target})`}`

/**
 * The references in a draft that the configuration on disk does not contain yet in the same entry, for the same command
 * and URLs: whoever wrote the draft, such as the author of a pasted text, would get their values.
 */
export function newReferences(saved: BranchNode, draft: BranchNode): readonly NewReference[] {
  const known = new Set(referencesOf(saved).map((one) => JSON.stringify(one)))
  const found = new Map(referencesOf(draft).map((one) => [JSON.stringify(one), one]))
  return [...found].flatMap(([identity, one]) => (known.has(identity) ? [] : [one]))
}

const referencesOf = ({ members }: BranchNode): NewReference[] =>
  [...members].flatMap(([section, node]) => {
    if (node.kind !== 'branch') return referencesAt([section], node)
    return [...node.members].flatMap(([name, entry]) => referencesAt([section, name], entry))
  })

function referencesAt(path: readonly string[], entry: ConfigTree): NewReference[] {
  const targets = new Set<string>()
  const found: string[] = []
  for (const [{ value }, [name]] of leavesIn(entry)) {
    const text = String(value)
    const [, scheme, host] = /(https?:\/\/)(?:[^/?#\s]*@)?([^/?#\s]+)/i.exec(text) ?? []
    if (name === 'command' || scheme) targets.add(scheme ? `${scheme}${host}` : text)
    const readable = referencesIn(text).filter((body) => variableOf(body) !== undefined || /^(?:file|exec):/.test(body))
    if (name === 'envFile') found.push(`envFile: ${text}`)
    else found.push(...readable.map((body) => `\${${body.replace(/:-.*/s, ':-…')}}`))
  }
  return found.map((reference) => ({ key: keyPath(path), target: [...targets].join(' '), reference }))
}

/** Why a text cannot be expanded even if all its variables are set and all its files and commands give a value. */
export function invalidReference(text: string): string | undefined {
  const names = referencesIn(text).map(variableOf)
  const env = Object.fromEntries(names.flatMap((name) => (name === undefined ? [] : [[name, '']])))
  const any = () => ({ text: '' })
  const expansion = expand(text, env, { file: any, exec: any })
  return 'fault' in expansion ? expansion.fault : undefined
}

function meaning(body: string, env: EnvVars, providers: Providers): Found {
  const [, scheme, named = ''] = /^(file|exec):(.+)$/s.exec(body) ?? []
  const provider = scheme === undefined ? undefined : providers[scheme as keyof Providers]
  if (provider) return provider(named)
  const [, name, fallback] = variable.exec(body) ?? []
  if (name === undefined || fallback?.includes('${')) return { fault: foreign(body) }
  const value = Object.hasOwn(env, name) ? env[name] : undefined
  if (value === undefined && fallback === undefined) {
    return { fault: `the variable ${name} is not set; set it, or write \${${name}:-default}` }
  }
  return { text: fallback !== undefined && !value ? fallback : (value as string) }
}

function foreign(body: string): string {
  // Do not show the default value: it may be a secret.
  const written = `\${${body.replace(/:-.*/s, ':-…')}}`
  if (body.startsWith('input:')) return `${written} is an editor's prompt; write a variable such as \${NAME} instead`
  return `${written} is not a variable; write \${NAME}, \${NAME:-default}, \${env:NAME}, \${file:PATH} or \${exec:COMMAND}, or $\${ for the literal text`
}

/** Returns the output of a command, given its command line and the configuration file that contains it. */
export type RunCommand = (line: string, file: string) => Found

/** Expands the variables in a document. Unset variables are not reported in disabled sections. */
export function interpolate(tree: BranchNode, env: EnvVars, home = '', run?: RunCommand) {
  const problems: ConfigProblem[] = []
  /** Files read for `${file:PATH}`. A change to one of them requires a reload. */
  const files = new Set<string>()
  /** Values from files, commands and variables with secret names. They must never be logged or stored. */
  const secrets = new Set<string>()
  const secret = (found: Found): Found => {
    if ('text' in found) secrets.add(found.text)
    return found
  }

  const fill = (leaf: LeafNode, path: Path, disabled: boolean): LeafNode => {
    if (typeof leaf.value !== 'string') return leaf
    const finish = leaf.finish ?? ((text: string) => text)
    let isUnread = false
    const output = (found: Found): Found => {
      if (!('unread' in found)) return secret(found)
      isUnread = true
      return found
    }
    const expansion = expand(leaf.value, env, {
      file(named) {
        const file = inHome(named, home) ?? resolve(leaf.at.file.path, '..', named)
        files.add(file)
        return secret(readSecretFile(file))
      },
      ...(run && !disabled && { exec: (line) => output(run(line, leaf.at.file.path)) }),
    })
    if ('text' in expansion) {
      for (const name of referencesIn(leaf.value).map(variableOf)) {
        if (name !== undefined && isSecretName(name) && env[name]) secrets.add(env[name])
      }
      // Validation must not judge a stand-in.
      if (isUnread) return { ...leaf, value: finish(expansion.text), variables: 'left' }
      return { ...leaf, value: finish(expansion.text), ...(expansion.text !== leaf.value && { variables: 'filled' }) }
    }
    if (!disabled) problems.push(problemAt(leaf.at, expansion.fault, { key: keyPath(path) }))
    // Mark the value as `left`, so that validation does not report a second problem for it.
    return { ...leaf, variables: 'left' }
  }

  const walk = (part: ConfigTree, path: Path, disabled: boolean): ConfigTree => {
    if (part.kind === 'leaf') return fill(part, path, disabled)
    if (part.kind === 'list')
      return { ...part, items: part.items.map((item, index) => walk(item, [...path, index], disabled)) }
    const off = disabled || isDisabled(part, env)
    return mapMembers(part, (value, key) => walk(value, [...path, key], off))
  }

  return { tree: walk(tree, [], false) as BranchNode, problems, files: [...files], secrets: [...secrets] }
}

/** Whether a section has `disabled: true` or `enabled: false`. */
export function isDisabled(part: ConfigTree, env: EnvVars = {}): boolean {
  const says = (key: string, wanted: boolean) => {
    const node = find(part, [key])
    if (node?.kind !== 'leaf') return false
    const expansion = typeof node.value === 'string' ? expand(node.value, env) : { text: String(node.value) }
    return 'text' in expansion && (node.finish?.(expansion.text) ?? expansion.text) === String(wanted)
  }
  return says('disabled', true) || says('enabled', false)
}

/** Maximum size of a secret file. Keys and certificates are much smaller, so a larger file must be a mistake. */
const maxBytes = 64 * 1024

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  ENOTDIR: 'no such file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'this symbolic link points to itself',
}

/** Reads a secret, without the final line break, from a file that others cannot read. Errors never contain a secret. */
export function readSecretFile(path: string): Found {
  let descriptor: number
  try {
    // Without O_NONBLOCK, opening a named pipe blocks until a writer opens it.
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code ?? ''
    return { fault: `the file ${path} cannot be read: ${reasons[code] ?? code}` }
  }
  try {
    const found = fstatSync(descriptor)
    if (!found.isFile()) return { fault: `${path} is not a regular file` }
    if (found.size > maxBytes)
      return { fault: `the file ${path} is larger than 64 KiB, which is too large for a secret` }
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
