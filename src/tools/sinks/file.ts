import { randomUUID } from 'node:crypto'
import { constants, existsSync } from 'node:fs'
import { copyFile, link, mkdir, open, realpath, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Config } from '../../config/schema.ts'
import { ToolwayError } from '../../core/errors.ts'
import type { Artifact, Sink } from './sink.ts'
import { safeNames, splitExtension } from './template.ts'

export type FileSinkConfig = Pick<Extract<Config['sinks'][string], { kind: 'file' }>, 'path' | 'template'>

const newFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0)

/** A sink that writes each artifact to its own file, always inside one folder. */
export const createFileSink = (name: string, config: FileSinkConfig): Omit<Sink, 'description'> => ({
  name,
  async write(artifact) {
    try {
      return { uri: pathToFileURL(await keep(config, artifact)).href }
    } catch (thrown) {
      if (thrown instanceof ToolwayError) throw thrown
      const { code = 'unknown reason' } = thrown as NodeJS.ErrnoException
      const sentence = `The sink ${name} cannot write to its folder (${code}); nothing was stored. The operator can correct sinks.${name}.path.`
      throw new ToolwayError('SERVER_UNAVAILABLE', sentence, { cause: thrown })
    }
  },
})

/** Writes an artifact and returns its path. Uses a temporary file first, so that readers never see a partial file. */
async function keep({ path, template }: FileSinkConfig, artifact: Artifact): Promise<string> {
  const names = [...safeNames(template, artifact)]
  const wanted = names.pop() as string
  await mkdir(path, { recursive: true })
  await using folders = new AsyncDisposableStack()
  let folder = folders.use(await holdFolder(await realpath(path)))
  for (const name of names) folder = folders.use(await holdInside(folder, name))
  const draft = folder.at(`.${randomUUID()}.tmp`)
  try {
    await writeDraft(draft, artifact.content)
    // The folder was moved or replaced during the write, so its path would lead elsewhere.
    if (!(await folder.isThere()))
      throw new ToolwayError('INVALID_PATH', "The sink's folder was replaced during the write; nothing was written.")
    const taken = await publishDraft(folder, draft, wanted)
    await folder.sync()
    return join(folder.path, taken)
  } finally {
    // Remove the draft even after a failed write: otherwise, on a full disk, each attempt would leave another file.
    await unlink(draft).catch(unless('ENOENT'))
  }
}

async function writeDraft(path: string, content: string): Promise<void> {
  await using file = await open(path, newFile, 0o666)
  await file.writeFile(content)
  await file.sync()
}

/** Gives the draft its final name, or a similar one if that name is taken. Never overwrites a file. */
async function publishDraft(folder: HeldFolder, draft: string, wanted: string): Promise<string> {
  for (const name of candidateNames(wanted)) {
    try {
      await linkFile(draft, folder.at(name))
      return name
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw thrown
    }
  }
  throw new ToolwayError(
    'INTERNAL',
    'All file names for this artifact are taken; the file name template should contain {id}.',
  )
}

function* candidateNames(name: string): Generator<string> {
  const { stem, ending } = splitExtension(name)
  yield name
  for (let number = 2; number <= 20; number++) yield `${stem}-${number}${ending}`
  for (let tries = 0; tries < 3; tries++) yield `${stem}-${randomUUID()}${ending}`
}

/** Gives a file a second name. A hard link never overwrites a file, unlike a rename, but may be unsupported. */
async function linkFile(draft: string, name: string): Promise<void> {
  try {
    await link(draft, name)
  } catch (thrown) {
    const { code = '' } = thrown as NodeJS.ErrnoException
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK', 'ENOSYS'].includes(code)) throw thrown
    await copyFile(draft, name, constants.COPYFILE_EXCL)
  }
}

const folderFlags = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0)
const throughDescriptors = process.platform === 'linux' && existsSync('/proc/self/fd')

type HeldFolder = Awaited<ReturnType<typeof holdFolder>>

/**
 * Opens an existing folder and holds it open; fails for a symbolic link. `path` must be a real path. On Linux, names are
 * resolved through the descriptor and not the path, so that replacing the folder with a link has no effect.
 */
async function holdFolder(path: string, at = path) {
  const handle = await open(at, folderFlags)
  const base = throughDescriptors ? `/proc/self/fd/${handle.fd}` : path
  return {
    path,
    at: (name: string) => join(base, name),
    isThere: async () => (await realpath(path).catch(unless('ENOENT', 'ENOTDIR'))) === path,
    /** Flushes new folder entries to disk. */
    sync: () => handle.sync(),
    [Symbol.asyncDispose]: () => handle.close(),
  }
}

async function holdInside(folder: HeldFolder, name: string): Promise<HeldFolder> {
  await mkdir(folder.at(name)).catch(unless('EEXIST'))
  try {
    return await holdFolder(join(folder.path, name), folder.at(name))
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException
    if (code !== 'ELOOP' && code !== 'ENOTDIR') throw thrown
    throw new ToolwayError('INVALID_PATH', `"${name}" is not a folder but a link or a file: nothing was written.`)
  }
}

const unless =
  (...codes: readonly string[]) =>
  (thrown: unknown): undefined => {
    if (!codes.includes((thrown as NodeJS.ErrnoException).code ?? '')) throw thrown
  }
