import { spawn } from 'node:child_process'
import { changeableByOthers } from './changeable.ts'
import type { Environment } from './interpolate.ts'

/** What a command printed, or why there is nothing. */
export type CommandOutcome = { readonly text: string } | { readonly fault: string }

export interface SecretCommand {
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
  env: Environment,
  withinMs = usualMs,
): Promise<CommandOutcome> {
  const words = wordsOf(line)
  const [program, ...args] = words ?? []
  if (program === undefined)
    return { fault: 'the command after exec: has a quotation mark without its partner, or is empty' }
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
    if (length > maxBytes) give({ fault: `the command ${program} printed more than 64 KiB, which no secret is` })
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
