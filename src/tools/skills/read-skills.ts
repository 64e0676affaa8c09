import { open, readdir, realpath, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import type { Definition } from '../../core/entry.ts'
import { fixedLimits } from '../../core/limits/fixed-limits.ts'
import { malformedSkill, maxSkillBytes, maxSkillFiles, type SkillFile, skillDigest } from '../../core/skills.ts'
import { hiddenCharacters } from '../../lib/characters.ts'
import { readFrontMatter } from '../../lib/front-matter.ts'
import { thrownText } from '../../lib/message-text.ts'

/** A skill in a folder. */
export interface LocalSkill {
  readonly definition: Definition
  /** The text of its `SKILL.md`. */
  readonly text: string
  /** The paths of its files, by their URIs. */
  readonly paths: ReadonlyMap<string, string>
  readonly folder: string
}

export interface FoundSkills {
  readonly skills: readonly LocalSkill[]
  /** Why folders are not served, one sentence each. */
  readonly problems: readonly string[]
  /** The files and folders whose changes may change the skills. */
  readonly filesToWatch: readonly string[]
}

const maxSkills = fixedLimits.folderSkills.value

/** Reads the skills in the subfolders of these folders. Of two with the same name, the first one counts. */
export async function readSkills(folders: readonly string[]): Promise<FoundSkills> {
  const skills = new Map<string, LocalSkill>()
  const problems: string[] = []
  const filesToWatch = [...folders]
  for (const folder of folders) {
    const names = await readdir(folder).catch((thrown: unknown) => {
      problems.push(`cannot read the folder: ${thrownText(thrown)}`)
      return []
    })
    for (const name of names.sort().slice(0, maxSkills)) {
      const path = join(folder, name)
      const skill = await readSkill(path, name, folder).catch((thrown: unknown) => `${path}: ${thrownText(thrown)}`)
      if (typeof skill === 'string') problems.push(skill)
      else if (skill !== undefined && skills.has(name))
        problems.push(`${path}: an earlier folder has a skill of this name`)
      else if (skill !== undefined) skills.set(name, skill)
      filesToWatch.push(path, join(path, 'SKILL.md'), ...(typeof skill === 'object' ? watchedPaths(skill) : []))
    }
  }
  return { skills: [...skills.values()], problems, filesToWatch: [...new Set(filesToWatch)] }
}

/** A skill's files and the folders between them, in which files may appear. */
function watchedPaths({ paths, folder }: LocalSkill): string[] {
  const files = [...paths.values()]
  const folders = files.flatMap((file) => {
    const parts = file.slice(folder.length + 1).split(sep)
    return parts.slice(0, -1).map((_, at) => join(folder, ...parts.slice(0, at + 1)))
  })
  return [...files, ...folders]
}

/** Reads one skill; undefined if the folder has no `SKILL.md`. Throws if it cannot be served. */
async function readSkill(path: string, name: string, folder: string): Promise<LocalSkill | undefined> {
  const root = await realpath(path)
  if (!root.startsWith((await realpath(folder)) + sep)) throw new Error('it is a link out of the folder')
  if (!(await stat(join(root, 'SKILL.md')).catch(() => undefined))) return undefined
  const files = await relativeFiles(root)
  if (files.length > maxSkillFiles) throw new Error(`it has more than ${maxSkillFiles} files`)
  const base = `skill://${name}/`
  const paths = new Map<string, string>()
  const resources: SkillFile[] = []
  let text = ''
  let left = maxSkillBytes
  for (const file of files) {
    const uri = base + file.split(sep).map(encodeURIComponent).join('/')
    const bytes = await readInside(root, join(root, file), left)
    left -= bytes.length
    paths.set(uri, join(root, file))
    resources.push({ uri, digest: skillDigest(bytes), size: bytes.length })
    if (file === 'SKILL.md') text = bytes.toString('utf8')
  }
  const definition = { uri: `${base}SKILL.md`, frontmatter: await readFrontMatter(text), resources }
  const problem = malformedSkill(definition)
  if (problem !== undefined) throw new Error(problem)
  if (hiddenCharacters(JSON.stringify(definition.frontmatter)).length > 0)
    throw new Error('its front matter has hidden characters')
  return { definition, text, paths, folder: root }
}

/** The paths of all files below a folder, relative to it. */
async function relativeFiles(root: string): Promise<readonly string[]> {
  const found = await readdir(root, { recursive: true, withFileTypes: true })
  return found
    .filter((file) => file.isFile() || file.isSymbolicLink())
    .map((file) => join(file.parentPath, file.name).slice(root.length + 1))
    .sort()
}

/** Reads a file below a folder. Throws if it is a link out of the folder, no file, or too large. */
export async function readInside(root: string, path: string, maxBytes = maxSkillBytes): Promise<Buffer> {
  const real = await realpath(path)
  if (!real.startsWith(root + sep)) throw new Error(`${path} is a link out of the folder`)
  await using file = await open(real)
  const { size } = await file.stat()
  if (size > maxBytes) throw new Error(`it has more than ${maxSkillBytes} bytes`)
  return file.readFile()
}
