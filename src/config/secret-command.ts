import { spawn } from 'node:child_process'
import { constants, lstatSync, realpathSync, type Stats, statSync } from 'node:fs'
import { access } from 'node:fs/promises'
import { delimiter, dirname, join, resolve } from 'node:path'
import { type EnvVars, interpolate, type RunCommand } from './interpolate.ts'
import { type BranchNode, mapLeaves } from './tree.ts'

/** What a command printed, or why there is nothing. */
type CommandOutcome = { readonly text: string } | { readonly fault: string }

interface SecretCommand {
  /** As it stands in the configuration. */
  readonly line: string
  /** The folder of the file that it stands in. */
  readonly folder: string
}

/** Longer than any key or certificate. */
const maxBytes = 64 * 1024
const usualMs = 5_000

/**
 * Runs a command for what it prints, without the line break at its end: no shell, so that nothing in its words means
 * more than it says; nobody to ask, so that it cannot wait for an answer; and in a group of its own, so that nothing of
 * it stays behind. What is wrong never says a word of what was printed.
 */
export async function runSecretCommand(
  { line, folder }: SecretCommand,
  env: EnvVars,
  withinMs = usualMs,
): Promise<CommandOutcome> {
  const words = wordsOf(line)
  const [program, ...args] = words ?? []
  if (program === undefined) return { fault: 'the command after exec: is empty or has an unclosed quotation mark' }
  const changeable = await changeableByOthers(words ?? [], folder, env)
  if (changeable !== undefined) return { fault: `the command ${program} is not run, because ${changeable}` }
  const { promise, resolve } = Promise.withResolvers<CommandOutcome>()
  const child = spawn(program, args, {
    cwd: folder,
    env: { ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: process.platform !== 'win32',
    windowsHide: true,
  })
  const chunks: Buffer[] = []
  let length = 0
  const give = (outcome: CommandOutcome) => {
    clearTimeout(timer)
    end(child.pid)
    child.stdout.destroy()
    resolve(outcome)
  }
  const timer = setTimeout(
    () => give({ fault: `the command ${program} did not end within ${withinMs / 1000} s (a fixed limit)` }),
    withinMs,
  )
  child.on('error', ({ code }: NodeJS.ErrnoException) =>
    give({ fault: `the command ${program} cannot be run (${code})` }),
  )
  child.stdout.on('data', (chunk: Buffer) => {
    length += chunk.length
    chunks.push(chunk)
    if (length > maxBytes)
      give({ fault: `the command ${program} printed more than 64 KiB, which is too long for a secret` })
  })
  child.on('close', (code, signal) => {
    if (code !== 0)
      return give({
        fault: `the command ${program} failed (${signal ?? `exit code ${code}`}); run it by hand to see why`,
      })
    const text = Buffer.concat(chunks)
      .toString('utf8')
      .replace(/\r?\n$/, '')
    give(text === '' ? { fault: `the command ${program} printed nothing` } : { text })
  })
  return promise
}

/** Words between spaces; quotation marks of either kind keep several together, and mean nothing else. */
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

/** The whole group, whatever it started. */
function end(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

/**
 * Why a program must not be run for a secret: other users of this machine could change it, a folder on its path, or a
 * file among its arguments, such as the script of an interpreter. Undefined where nobody can.
 */
async function changeableByOthers(words: readonly string[], folder: string, env: EnvVars): Promise<string | undefined> {
  // Other systems have no modes to go by.
  if (process.platform === 'win32') return undefined
  const [program = '', ...args] = words
  const found = program.includes('/') ? resolve(folder, program) : await searched(program, env)
  // What is not there cannot be started, and is told of as such.
  const files = [found, ...args.map((word) => resolve(folder, word))].filter((path) => path !== undefined)
  for (const path of files) {
    if (!isFile(path)) continue
    for (const place of new Set([path, realpathSync(path)])) {
      const fault = faultOnPath(place)
      if (fault !== undefined) return fault
    }
  }
  return undefined
}

async function searched(program: string, env: EnvVars): Promise<string | undefined> {
  for (const folder of (env.PATH ?? '').split(delimiter)) {
    const path = join(folder, program)
    const runnable = await access(path, constants.X_OK).then(
      () => isFile(path),
      () => false,
    )
    if (folder !== '' && runnable) return path
  }
  return undefined
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true

/** Looks at the file and at every folder above it: whoever can write in one of those can put another file there. */
function faultOnPath(file: string): string | undefined {
  let below: Stats | undefined
  for (let path = file; ; path = dirname(path)) {
    const found = lstatSync(path)
    // The mode of a link means nothing: where it leads is looked at as well.
    if (!found.isSymbolicLink()) {
      if (othersCanWrite(found) && !isProtected(found, below)) {
        const mode = (found.mode & 0o7777).toString(8)
        return `other users can change ${path} (mode ${mode}); run chmod go-w on it`
      }
    }
    below = found
    if (path === dirname(path)) return undefined
  }
}

const othersCanWrite = ({ mode, uid, gid }: Stats): boolean =>
  (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && !isTrustedGroup(uid, gid))

/**
 * Members of root's group, and of macOS's administrators (who own Homebrew), can become root anyway. A group with the
 * number of the user is the user's own, where each user has such a group.
 */
const isTrustedGroup = (uid: number, gid: number): boolean =>
  gid === 0 || (process.platform === 'darwin' && gid === 80) || (gid === uid && uid === process.getuid?.())

/** In a folder with the sticky bit, such as /tmp, only its owner can replace a file. */
const isProtected = (folder: Stats, below: Stats | undefined): boolean =>
  below !== undefined && (folder.mode & 0o1000) !== 0 && (below.uid === 0 || below.uid === process.getuid?.())

const foreign =
  'commands run only for toolway.yaml and for files named with --config; this file was found automatically'

/**
 * Runs the commands that a configuration names by `${exec:COMMAND}`, each once and all at the same time, before it is
 * read in earnest. `trusted` are the files of the operator: others may lie in any folder that somebody has checked out.
 */
export async function runCommands(
  tree: BranchNode,
  env: EnvVars,
  trusted: ReadonlySet<string>,
): Promise<RunCommand | undefined> {
  if (!namesCommands(tree)) return undefined
  const wanted = new Map<string, { readonly line: string; readonly file: string }>()
  // What it would come to is not asked here: only which commands stand in what is not disabled.
  interpolate(tree, env, '', (line, file) => {
    wanted.set(keyOf(line, file), { line, file })
    return { text: 'x' }
  })
  const run = async ({ line, file }: { line: string; file: string }): Promise<CommandOutcome> =>
    trusted.has(file) ? runSecretCommand({ line, folder: dirname(file) }, env) : { fault: foreign }
  const outcomes = new Map(await Promise.all([...wanted].map(async ([key, asked]) => [key, await run(asked)] as const)))
  return (line, file) => outcomes.get(keyOf(line, file)) ?? { fault: 'the command was not run' }
}

function namesCommands(tree: BranchNode): boolean {
  let found = false
  mapLeaves(tree, (leaf) => {
    found ||= typeof leaf.value === 'string' && leaf.value.includes('${exec:')
    return leaf
  })
  return found
}

const keyOf = (line: string, file: string): string => JSON.stringify([dirname(file), line])
