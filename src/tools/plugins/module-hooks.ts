import { statSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Untrusted } from './refused.ts'
import { writableByOthers } from './writable-by-others.ts'

const parameter = 'toolway-plugin'

/** The files that were loaded under a tag. */
const loaded = new Map<string, Set<string>>()
let isRegistered = false

/** The address by which a plugin is imported: another tag is another module, so that a changed one is loaded anew. */
export function taggedUrl(file: string, tag: string): string {
  loaded.set(tag, (loaded.get(tag) ?? new Set<string>()).add(file))
  return withTag(pathToFileURL(file).href, tag)
}

export const filesOf = (tag: string): readonly string[] => [...(loaded.get(tag) ?? [])]

/**
 * Modules of plugins lie anywhere: for them `toolway` and `zod` are ours, so that there is one of each. What they
 * import from beside them has their tag, too, and must be as safe from others as they are.
 */
export function registerPluginHooks(library: URL): void {
  if (isRegistered) return
  isRegistered = true
  registerHooks({
    resolve(specifier, context, next) {
      const tag = tagOf(context.parentURL)
      if (tag === undefined) return next(specifier, context)
      if (specifier === 'toolway') return { url: library.href, shortCircuit: true }
      if (/^zod(?:\/|$)/.test(specifier)) return next(specifier, { ...context, parentURL: import.meta.url })
      const found = next(specifier, context)
      const isBeside = /^(?:\.{0,2}\/|file:|#)/.test(specifier) && found.url.startsWith('file:')
      if (!isBeside) return found
      const file = fileURLToPath(found.url)
      const problem = writableByOthers(file)
      if (problem !== undefined) throw new Untrusted(`The plugin imports ${file}, which is refused: ${problem}`)
      loaded.get(tag)?.add(file)
      return { ...found, url: withTag(found.url, tag) }
    },
  })
}

function withTag(href: string, tag: string): string {
  const url = new URL(href)
  url.searchParams.set(parameter, tag)
  return url.href
}

const tagOf = (url: string | undefined): string | undefined =>
  url?.includes(`${parameter}=`) ? (new URL(url).searchParams.get(parameter) ?? undefined) : undefined

interface Known {
  readonly tag: string
  /** The state of every file that it was made of. */
  marks: string
}

/** Modules stay in memory for as long as the process runs, so what is known of them does, too. */
const known = new Map<string, Known>()
let count = 0

/** The tag to import a module with: the same as before, unless one of its files has changed since. */
export function tagFor(file: string): string {
  const before = known.get(file)
  if (before && before.marks === marksOf(before.tag)) return before.tag
  const tag = `${++count}`
  known.set(file, { tag, marks: '' })
  return tag
}

/** Remembers what a module has turned out to be made of. */
export function noteFiles(file: string): void {
  const found = known.get(file)
  if (found) found.marks = marksOf(found.tag)
}

const marksOf = (tag: string): string => filesOf(tag).map(markOf).join('\n')

function markOf(file: string): string {
  const facts = statSync(file, { bigint: true, throwIfNoEntry: false })
  return facts ? `${file} ${facts.ino} ${facts.size} ${facts.mtimeNs} ${facts.ctimeNs}` : file
}
