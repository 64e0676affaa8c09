import { createHash } from 'node:crypto'
import { isRecord } from '../lib/is-record.ts'
import type { Definition } from './entry.ts'
import { fixedLimits } from './limits/fixed-limits.ts'
import type { ResultBody } from './result.ts'

/*
 * Agent Skills over MCP (SEP-2640): a skill is a folder with a `SKILL.md`, named by the URI of that file. Its definition
 * lists its files with their digests, or says that they are `dynamic`.
 */

export interface SkillFile {
  readonly uri: string
  readonly digest: string
  readonly size: number
}

const entryFile = '/SKILL.md'
const namePattern = /^(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/
const digestPattern = /^sha256:[0-9a-f]{64}$/

/** What every host accepts; a larger skill may be refused. */
export const maxSkillFiles = fixedLimits.skillFiles.value
export const maxSkillBytes = fixedLimits.skillBytes.value

/** The URI of a skill's folder, given that of its `SKILL.md`. */
export const skillRoot = (uri: string): string => uri.slice(0, -entryFile.length)

/** A skill's files; undefined if they are generated, so that they have no digests. */
export const skillFiles = ({ resources }: Definition): readonly SkillFile[] | undefined =>
  Array.isArray(resources) ? resources : undefined

export const skillFrontmatter = ({ frontmatter }: Definition) =>
  frontmatter as { readonly name: string; readonly description: string }

export const skillDigest = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

/** Why a definition is not that of a skill, if so. */
export function malformedSkill({ uri, frontmatter, resources }: Definition): string | undefined {
  if (typeof uri !== 'string' || !uri.endsWith(entryFile)) return 'uri does not end with /SKILL.md'
  const { name, description } = isRecord(frontmatter) ? frontmatter : {}
  if (typeof name !== 'string' || typeof description !== 'string') return 'frontmatter without name and description'
  if (!namePattern.test(name)) return 'name has characters other than a-z, 0-9 and -'
  if (!skillRoot(uri).endsWith(`/${name}`)) return 'uri and frontmatter have different names'
  return resources === 'dynamic' ? undefined : malformedFiles(uri, resources)
}

function malformedFiles(uri: string, resources: unknown): string | undefined {
  if (!Array.isArray(resources)) return 'resources is neither a list nor "dynamic"'
  if (resources.length > maxSkillFiles) return `more than ${maxSkillFiles} files`
  const folder = `${skillRoot(uri)}/`
  const known = new Set<string>()
  let bytes = 0
  for (const file of resources) {
    if (!isSkillFile(file)) return 'a file without uri, digest and size'
    if (!file.uri.startsWith(folder)) return 'a file outside its folder'
    if (known.has(file.uri)) return 'a file listed twice'
    known.add(file.uri)
    bytes += file.size
  }
  if (!known.has(uri)) return 'SKILL.md is not among its files'
  return bytes > maxSkillBytes ? `more than ${maxSkillBytes} bytes` : undefined
}

const isSkillFile = (file: unknown): file is SkillFile =>
  isRecord(file) &&
  typeof file.uri === 'string' &&
  typeof file.digest === 'string' &&
  digestPattern.test(file.digest) &&
  Number.isSafeInteger(file.size) &&
  (file.size as number) >= 0

/** The bytes of a resource that was read; undefined unless the result has exactly one content. */
export function contentBytes({ contents }: ResultBody): Buffer | undefined {
  const [content] = Array.isArray(contents) && contents.length === 1 ? contents : []
  if (!isRecord(content)) return undefined
  if (typeof content.text === 'string') return content.blob === undefined ? Buffer.from(content.text) : undefined
  return typeof content.blob === 'string' ? Buffer.from(content.blob, 'base64') : undefined
}

/** Whether a result is the file that the skill's definition lists. */
export function hasListedContent({ digest, size }: SkillFile, body: ResultBody): boolean {
  const bytes = contentBytes(body)
  return bytes !== undefined && bytes.length === size && skillDigest(bytes) === digest
}

/** A file or folder in a folder of a skill, as `resources/directory/read` lists it. */
export interface FolderChild {
  readonly uri: string
  readonly name: string
  readonly mimeType?: string
  readonly size?: number
}

/** What a folder of a skill contains; undefined if the skill has no such folder. */
export function folderChildren(files: readonly SkillFile[], folder: string): readonly FolderChild[] | undefined {
  const prefix = `${folder}/`
  const children = new Map<string, FolderChild>()
  for (const { uri, size } of files) {
    if (!uri.startsWith(prefix)) continue
    const [name = '', ...inner] = uri.slice(prefix.length).split('/')
    const child = { uri: prefix + name, name: decodeName(name) }
    const own = /\.md$/i.test(name) ? { mimeType: 'text/markdown', size } : { size }
    children.set(name, { ...child, ...(inner.length > 0 ? { mimeType: 'inode/directory' } : own) })
  }
  return children.size > 0 ? [...children.values()] : undefined
}

function decodeName(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
