import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { createFrameReader, encodeFrame, messageKinds } from '../guest/protocol.ts'
import type { ChildListener, SandboxChild } from '../runtime.ts'
import { createReadiness } from './options.ts'

export interface ProcessOptions {
  readonly command: readonly string[]
  /** Whom it runs as, where we may choose. */
  readonly user?: number
  /** The filter of system calls, for `bwrap`. */
  readonly filter?: Buffer
  /** Whether `bwrap` tells which process the program itself is. */
  readonly wrapped?: boolean
  /** The longest message of each kind. */
  limit(kind: number): number | undefined
}

/** Descriptors that `bwrap` is given, beside the three that everybody has. */
export const filterDescriptor = 3
export const infoDescriptor = 4

/** Clock ticks are hundredths of a second on every Linux that Node runs on. */
const tickMs = 10
const maxStderr = 4096

/** Starts a child as a process, in a group and a session of its own, with nothing of our environment. */
export function processChild({ command, user, filter, wrapped, limit }: ProcessOptions): SandboxChild {
  const [program = '', ...args] = command
  const started = spawn(program, args, {
    stdio: ['pipe', 'pipe', 'pipe', ...(wrapped ? (['pipe', 'pipe'] as const) : [])],
    env: {},
    cwd: '/',
    detached: true,
    ...(user !== undefined && { uid: user, gid: user }),
  })
  const [stdin, stdout, stderr] = started.stdio as unknown as [Writable, Readable, Readable]
  const readiness = createReadiness()
  let listener: ChildListener | undefined
  let written = ''
  /** The first process of its world, and the program itself: behind `bwrap` its only child. */
  let first = wrapped ? undefined : started.pid
  let inner: number | undefined
  let greeted = false
  let over = false

  /** It has come up once it says so, and it is known which process is to be watched. */
  const settle = () => {
    if (!greeted || first === undefined) return
    inner = wrapped ? childOf(first) : first
    if (inner === undefined) readiness.failed('the kernel does not tell which process is the program')
    else readiness.ready()
  }

  const reader = createFrameReader({
    limit,
    frame(frame) {
      if (greeted || frame.kind !== messageKinds.ready) return listener?.frame(frame)
      greeted = true
      settle()
    },
    broken: (reason) => {
      stdout.destroy()
      listener?.broken(reason)
    },
  })
  stdout.on('data', reader.push)
  stderr.on('data', (chunk: Buffer) => {
    written += chunk.toString('latin1').slice(0, maxStderr - written.length)
    // Listening on would cost us more than it costs a program to talk.
    if (written.length === maxStderr) stderr.destroy()
  })
  for (const stream of started.stdio) stream?.on('error', () => {})
  if (wrapped) {
    ;(started.stdio[filterDescriptor] as Writable).end(filter)
    readInfo(started, (pid) => {
      first = pid
      settle()
    })
  }
  const ended = new Promise<void>((resolve) => {
    const gone = (how: string) => {
      if (over) return
      over = true
      readiness.failed(reasonIn(written) || how)
      listener?.ended()
      resolve()
    }
    started.on('error', (error) => gone(error.message))
    started.on('close', (code, signal) => gone(`it ended with ${signal ?? `code ${code}`}`))
  })

  return {
    ready: readiness.promise,
    ended,
    listen(given) {
      listener = given
      if (over) given.ended()
    },
    send: (kind, id, payload) =>
      new Promise((resolve) => {
        if (over) resolve()
        else stdin.write(encodeFrame(kind, id, payload), () => resolve())
      }),
    cpuMs: () => (inner === undefined || over ? undefined : cpuOf(inner)),
    freeze: () => !over && inner !== undefined && signalled(inner, 'SIGSTOP'),
    thaw: () => void (inner !== undefined && signalled(inner, 'SIGCONT')),
    kill() {
      if (over || started.pid === undefined) return ended
      // Its world first, as long as the number is surely its own; then the `bwrap` outside, and whoever shares its group.
      if (first !== undefined) signalled(first, 'SIGKILL')
      signalled(-started.pid, 'SIGKILL')
      for (const stream of started.stdio) stream?.destroy()
      return ended
    },
  }
}

/** It is said before the program is started; whatever comes later is not `bwrap`'s, and not heard. */
function readInfo(from: ChildProcess, found: (pid: number) => void): void {
  let text = ''
  from.stdio[infoDescriptor]?.on('data', (chunk: Buffer) => {
    if (text.length > 1024) return
    text += chunk.toString('latin1')
    const pid = /"child-pid": *(\d+)[^\d]/.exec(text)?.[1]
    if (!pid) return
    text = ' '.repeat(1025)
    found(Number(pid))
  })
}

/** The line of a program's last words that says most. */
function reasonIn(words: string): string {
  const lines = words.split('\n').filter((line) => line.trim() !== '')
  return (lines.find((line) => /^bwrap: |Error/.test(line)) ?? lines.at(-1) ?? '').slice(0, 300)
}

function signalled(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

function childOf(pid: number): number | undefined {
  try {
    return Number.parseInt(readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1'), 10) || undefined
  } catch {
    return undefined
  }
}

function cpuOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in parentheses may contain anything, so the fields are counted from its end.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * tickMs
  } catch {
    return undefined
  }
}
