import { statSync } from 'node:fs'
import { createRequire, registerHooks } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { writableByOthers } from './writable-by-others.ts'

/** A file that other users could change. */
export class Untrusted extends Error {}

const tagParameter = 'toolway-plugin'
const ownRequire = createRequire(import.meta.url)

const filesByTag = new Map<string, Set<string>>()
let isRegistered = false

/** The URL for importing a file. A new tag makes Node.js load the file again, as a new module. */
export function taggedUrl(file: string, tag: string): string {
  filesByTag.set(tag, (filesByTag.get(tag) ?? new Set<string>()).add(file))
  return withTag(pathToFileURL(file).href, tag)
}

export const filesOf = (tag: string): readonly string[] => [...(filesByTag.get(tag) ?? [])]

/**
 * Registers hooks for importing plugins, which may be in any folder. `toolway` and `zod` resolve to Toolway's own
 * copies, so that there is only one copy of each. Modules that plugins import by path get the same tag and the same
 * permission check.
 */
export function registerPluginHooks(library: URL): void {
  if (isRegistered) return
  isRegistered = true
  registerHooks({
    resolve(specifier, context, next) {
      const tag = urlTag(context.parentURL) ?? tagOfCommonJs(context.parentURL)
      if (tag === undefined) {
        const found = next(specifier, context)
        const entered = urlTag(found.url)
        // The path without symbolic links, which is how CommonJS modules know themselves.
        if (entered !== undefined) filesByTag.get(entered)?.add(fileURLToPath(found.url))
        return found
      }
      if (specifier === 'toolway') return { url: library.href, shortCircuit: true }
      if (/^zod(?:\/|$)/.test(specifier)) {
        // For `require`, Node.js ignores another parent.
        if (context.conditions.includes('require'))
          return { url: pathToFileURL(ownRequire.resolve(specifier)).href, shortCircuit: true }
        return next(specifier, { ...context, parentURL: import.meta.url })
      }
      const found = next(specifier, context)
      const isBeside = /^(?:\.{0,2}\/|file:|#)/.test(specifier) && found.url.startsWith('file:')
      if (!isBeside) return found
      const file = fileURLToPath(found.url)
      const problem = writableByOthers(file)
      if (problem !== undefined) throw new Untrusted(`The plugin imports ${file}, which cannot be loaded: ${problem}`)
      filesByTag.get(tag)?.add(file)
      return { ...found, url: withTag(found.url, tag) }
    },
  })
}

function withTag(href: string, tag: string): string {
  const url = new URL(href)
  url.searchParams.set(tagParameter, tag)
  return url.href
}

const urlTag = (url: string | undefined): string | undefined =>
  url?.includes(`${tagParameter}=`) ? (new URL(url).searchParams.get(tagParameter) ?? undefined) : undefined

/** The tag of a CommonJS module that requires or imports another one: Node.js forgets the parameter of its URL. */
function tagOfCommonJs(parentURL: string | undefined): string | undefined {
  if (!parentURL?.startsWith('file:')) return undefined
  const file = fileURLToPath(parentURL)
  return [...knownModules.values()].find(({ tag }) => filesByTag.get(tag)?.has(file))?.tag
}

interface KnownModule {
  readonly tag: string
  /** A fingerprint of all files in the module. */
  marks: string
}

/** The loaded plugins. Never shrinks, because Node.js keeps loaded modules for the lifetime of the process. */
const knownModules = new Map<string, KnownModule>()
let tagCount = 0

/** The tag for importing a module; a new tag if any file in the module has changed. */
export function tagFor(file: string): string {
  const before = knownModules.get(file)
  if (before && before.marks === marksOf(before.tag)) return before.tag
  // Node.js keeps CommonJS modules by their path, without the tag.
  if (before) for (const each of filesOf(before.tag)) delete ownRequire.cache[each]
  const tag = `${++tagCount}`
  knownModules.set(file, { tag, marks: '' })
  return tag
}

export function noteFiles(file: string): void {
  const found = knownModules.get(file)
  if (found) found.marks = marksOf(found.tag)
}

const marksOf = (tag: string): string => filesOf(tag).map(fileMark).join('\n')

function fileMark(file: string): string {
  const facts = statSync(file, { bigint: true, throwIfNoEntry: false })
  return facts ? `${file} ${facts.ino} ${facts.size} ${facts.mtimeNs} ${facts.ctimeNs}` : file
}
