import { skillFiles, skillRoot } from '../core/skills.ts'
import { memoizeByObject } from '../lib/memoize.ts'
import type { Item } from './snapshot.ts'

/** A server's skills by their URIs. */
export type SkillItems = ReadonlyMap<string, Item>

/** The innermost skill of a server whose folder contains a URI, in any spelling that the server may accept. */
export function skillAt(skills: SkillItems | undefined, uri: string): Item | undefined {
  if (skills === undefined || skills.size === 0) return undefined
  const roots = rootsOf(skills)
  let folder = foldUri(uri)
  for (let end = folder.lastIndexOf('/'); end > 0; end = folder.lastIndexOf('/')) {
    const item = roots.get(folder)
    if (item) return item
    folder = folder.slice(0, end)
  }
  return roots.get(folder)
}

/** Whether a URI is that of a file of the skill, as far as that is known. */
export function listsFile({ entry }: Item, uri: string): boolean {
  const files = skillFiles(entry.definition)
  return files === undefined || files.some((file) => file.uri === uri)
}

const rootsOf = memoizeByObject(
  (skills: SkillItems): SkillItems => new Map([...skills].map(([uri, item]) => [foldUri(skillRoot(uri)), item])),
)

/** A URI without what spellings of the same file may differ in: case, percent-encoding, empty and dot segments. */
function foldUri(uri: string): string {
  const path: string[] = []
  for (const segment of decodeUri(uri.replace(/[?#].*$/s, ''))
    .replaceAll('\\', '/')
    .toLowerCase()
    .split('/')) {
    if (segment === '..') path.pop()
    else if (segment !== '.' && segment !== '') path.push(segment)
  }
  return path.join('/')
}

function decodeUri(uri: string): string {
  try {
    return decodeURIComponent(uri)
  } catch {
    return uri
  }
}
