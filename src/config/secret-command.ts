import { spawn } from 'node:child_process'
import { lstatSync, realpathSync, type Stats } from 'node:fs'
import { dirname, resolve } from 'node:path'
import {
  findProgram,
  isExecutable,
  isExistingFile,
  ownGroup,
  signalGroup,
  spawnArguments,
} from '../process/programs.ts'
import { type EnvVars, interpolate, type RunCommand } from './interpolate.ts'
import { type BranchNode, leavesIn } from './tree.ts'

type CommandOutcome = ReturnType<RunCommand>

/** Maximum size of a command's output. Keys and certificates are much smaller. */
const maxBytes = 64 * 1024
const usualMs = 5_000

/**
 * Runs a command and returns its output without the final line break. The command runs without a shell, so its
 * arguments are not interpreted; without stdin, so it cannot wait for input; and in its own process group, so its child
 * processes are killed with it. Error messages never contain the output. `folder` is the configuration file's folder.
 */
export async function runSecretCommand(
  { line, folder }: { readonly line: string; readonly folder: string },
  env: EnvVars,
  withinMs = usualMs,
): Promise<CommandOutcome> {
  const [program, ...args] = wordsOf(line) ?? []
  if (program === undefined) return { fault: 'the command after exec: is empty or has an unclosed quotation mark' }
  const changeable = changeableByOthers([program, ...args], folder, env)
  if (changeable !== undefined) return { fault: `the command ${program} was not run, because ${changeable}` }
  const { promise, resolve } = Promise.withResolvers<CommandOutcome>()
  const [file, words, how] = spawnArguments(program, args, { cwd: folder, env })
  const stdio: ['ignore', 'pipe', 'ignore'] = ['ignore', 'pipe', 'ignore']
  const child = spawn(file, words, { cwd: folder, env: { ...env }, stdio, ...ownGroup, ...how })
  const chunks: Buffer[] = []
  let length = 0
  const give = (outcome: CommandOutcome) => {
    clearTimeout(timer)
    if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL')
    child.stdout.destroy()
    resolve(outcome)
  }
  const timer = setTimeout(
    () => give({ fault: `the command ${program} did not finish within ${withinMs / 1000} s (a fixed limit)` }),
    withinMs,
  )
  child.on('error', ({ code }: NodeJS.ErrnoException) =>
    give({ fault: `the command ${program} cannot be run (${code})` }),
  )
  child.stdout.on('data', (chunk: Buffer) => {
    length += chunk.length
    chunks.push(chunk)
    if (length > maxBytes)
      give({ fault: `the command ${program} printed more than 64 KiB, which is too much for a secret` })
  })
  child.on('close', (code, signal) => {
    if (code !== 0)
      return give({
        fault: `the command ${program} failed (${signal ?? `exit code ${code}`}); run it manually to see the cause`,
      })
    const text = Buffer.concat(chunks)
      .toString('utf8')
      .replace(/\r?\n$/, '')
    give(text === '' ? { fault: `the command ${program} printed nothing` } : { text })
  })
  return promise
}

/** Splits a command line at spaces. Single and double quotes group words; there are no escapes. */
export function wordsOf(line: string): readonly string[] | undefined {
  const part = /\s*((?:[^\s"']|"[^"]*"|'[^']*')+)/y
  const words: string[] = []
  const rest = line.trimEnd()
  while (part.lastIndex < rest.length) {
    const found = part.exec(rest)?.[1]
    if (found === undefined) return undefined
    words.push(found.replaceAll(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single))
  }
  return words[0] === '' ? undefined : words
}

/**
 * Returns the reason why a program must not be run to get a secret: other users can change the program, a folder on its
 * path, or a file among its arguments, such as an interpreter's script. Undefined if running it is safe.
 */
function changeableByOthers(words: readonly string[], folder: string, env: EnvVars): string | undefined {
  // Windows has no file modes to check.
  if (process.platform === 'win32') return undefined
  const [program = '', ...args] = words
  // Ignore a missing program: spawn reports it.
  const found = findProgram(program, {
    cwd: folder,
    env,
    isWanted: program.includes('/') ? isExistingFile : isExecutable,
  })
  const files = [...(found === undefined ? [] : [found]), ...args.map((word) => resolve(folder, word))]
  for (const path of files) {
    if (!isExistingFile(path)) continue
    for (const place of new Set([path, realpathSync(path)])) {
      const fault = faultOnPath(place)
      if (fault !== undefined) return fault
    }
  }
  return undefined
}

/** Checks the file and all folders above it, because anyone with write access to a folder can replace what is in it. */
function faultOnPath(file: string): string | undefined {
  let below: Stats | undefined
  for (let path = file; ; path = dirname(path)) {
    const found = lstatSync(path)
    // Skip symbolic links, whose mode is meaningless. The caller checks the target as well.
    if (!found.isSymbolicLink() && othersCanWrite(found) && !isProtected(found, below)) {
      const mode = (found.mode & 0o7777).toString(8)
      // A folder with the sticky bit, such as /tmp, is meant for all users, so its mode must stay.
      const remedy = isSticky(found) ? 'move the files of this command to another folder' : 'run chmod go-w on it'
      return `other users can change ${path} (mode ${mode}); ${remedy}`
    }
    below = found
    if (path === dirname(path)) return undefined
  }
}

const othersCanWrite = ({ mode, uid, gid }: Stats): boolean =>
  (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && !isTrustedGroup(uid, gid))

/**
 * Whether write access for this group is acceptable. Members of root's group and of the macOS admin group (which owns
 * Homebrew) can become root anyway. A group whose number equals the user's is usually that user's private group.
 */
const isTrustedGroup = (uid: number, gid: number): boolean =>
  gid === 0 || (process.platform === 'darwin' && gid === 80) || (gid === uid && uid === process.getuid?.())

const isSticky = (found: Stats): boolean => found.isDirectory() && (found.mode & 0o1000) !== 0

/** Whether the sticky bit protects `below`: in a folder with that bit, such as /tmp, only owners can replace files. */
const isProtected = (folder: Stats, below: Stats | undefined): boolean =>
  below !== undefined && isSticky(folder) && (below.uid === 0 || below.uid === process.getuid?.())

const foreign =
  'commands run only for toolway.yaml and for files named with --config; this file was found automatically'

/** Stands in for the output of a command that is not run. */
const standIn = { text: 'unread-secret', unread: true } as const

interface SecretCommand {
  readonly line: string
  readonly file: string
}

/**
 * Runs all commands in `${exec:COMMAND}` concurrently, each once, before the configuration is interpolated. `trusted` are
 * the files whose commands may run: others may come from any cloned repository. If `tree` is a draft, `saved` is the
 * configuration on disk, and only commands that occur in both run, because nobody reviewed others.
 */
export async function runCommands(
  tree: BranchNode,
  env: EnvVars,
  trusted: ReadonlySet<string>,
  saved?: BranchNode,
): Promise<RunCommand | undefined> {
  if (!namesCommands(tree)) return undefined
  const known = saved && commandsIn(saved, env, trusted)
  const run = async ({ line, file }: SecretCommand): Promise<CommandOutcome> => {
    if (!trusted.has(file)) return { fault: foreign }
    return known && !known.has(keyOf(line, file)) ? standIn : runSecretCommand({ line, folder: dirname(file) }, env)
  }
  const wanted = commandsIn(tree, env)
  const outcomes = new Map(await Promise.all([...wanted].map(async ([key, asked]) => [key, await run(asked)] as const)))
  return (line, file) => outcomes.get(keyOf(line, file)) ?? { fault: 'the command was not run' }
}

/** The commands in enabled sections, by key. */
function commandsIn(tree: BranchNode, env: EnvVars, files?: ReadonlySet<string>): Map<string, SecretCommand> {
  const found = new Map<string, SecretCommand>()
  // The interpolated tree is discarded.
  interpolate(tree, env, '', (line, file) => {
    if (files?.has(file) ?? true) found.set(keyOf(line, file), { line, file })
    return { text: 'x' }
  })
  return found
}

const namesCommands = (tree: BranchNode): boolean =>
  leavesIn(tree).some(([{ value }]) => String(value).includes('${exec:'))

const keyOf = (line: string, file: string): string => JSON.stringify([dirname(file), line])
