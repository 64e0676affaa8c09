import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { PassThrough, type Readable, type Writable } from 'node:stream'
import { createFrameReader, encodeFrame, messageKinds } from '../guest/protocol.ts'
import type { ChildListener, SandboxChild } from '../runtime.ts'

interface ProcessOptions {
  readonly command: readonly string[]
  /** The user to run as, if Toolway runs as root. */
  readonly user?: number
  /** The seccomp filter for `bwrap`. */
  readonly filter?: Buffer
  /** Whether the command is `bwrap`, which reports the process id of PID 1. */
  readonly wrapped?: boolean
  /** Maximum message size by kind. */
  limit(kind: number): number | undefined
}

/** Numbers of the extra file descriptors that `bwrap` gets. */
export const filterDescriptor = 3
export const infoDescriptor = 4
const descriptors = [0, 1, 2, filterDescriptor, infoDescriptor]

/** One clock tick in `/proc`: Node runs only on Linux systems with 100 ticks per second. */
const clockTickMs = 10
const maxStderr = 4096

/** The error for a user that a container or user namespace does not have. */
export class UnmappedUser extends Error {
  constructor(user: number) {
    super(
      `Toolway runs as root, and programs run as user ${user}, who does not exist in this container or user namespace: ` +
        'run Toolway as another user than root (docs/sandbox.md).',
    )
  }
}

/** Starts a child as a process in its own group and session, with an empty environment. */
export function processChild({ command, user, filter, wrapped, limit }: ProcessOptions): SandboxChild {
  const [program = '', ...args] = command
  const started = startedAs(user, () =>
    spawn(program, args, {
      stdio: ['pipe', 'pipe', 'pipe', ...(wrapped ? (['pipe', 'pipe'] as const) : [])],
      env: {},
      cwd: '/',
      detached: true,
      uid: user,
      gid: user,
    }),
  )
  // Node creates no streams if too many files are open; the process then ends with an error.
  const streams: ChildProcess['stdio'] = started.stdio ?? descriptors.map(() => new PassThrough())
  const [stdin, stdout, stderr] = streams as unknown as [Writable, Readable, Readable]
  const life = createLifecycle()
  const { ready, ended, listen } = life
  let written = ''
  /** `first` is PID 1 in the namespace; `inner` is its child, the program. They are the same without `bwrap`. */
  let first = wrapped ? undefined : started.pid
  let inner: number | undefined
  let greeted = false

  /** Reports that the child is ready once the child has said so and its process id is known. */
  const settle = () => {
    if (!greeted || first === undefined) return
    inner = wrapped ? childPid(first) : first
    if (inner === undefined) life.failed("the program's process id is unknown")
    else life.started()
  }

  const reader = createFrameReader({
    limit,
    frame(frame) {
      if (greeted || frame.kind !== messageKinds.ready) return life.listener?.frame(frame)
      greeted = true
      settle()
    },
    broken: (reason) => {
      stdout.destroy()
      life.listener?.broken(reason)
    },
  })
  stdout.on('data', reader.push)
  stderr.on('data', (chunk: Buffer) => {
    written += chunk.toString('latin1').slice(0, maxStderr - written.length)
    // Stop reading, because reading more output would cost us more than writing it costs the program.
    if (written.length === maxStderr) stderr.destroy()
  })
  for (const stream of streams) stream?.on('error', () => {})
  if (wrapped) {
    ;(streams[filterDescriptor] as Writable).end(filter)
    readInfo(streams[infoDescriptor] as Readable, (pid) => {
      first = pid
      settle()
    })
  }
  started.on('error', (error) => life.exited(reasonIn(written) || error.message))
  started.on('close', (code, signal) => life.exited(reasonIn(written) || `it ended with ${signal ?? `code ${code}`}`))

  return {
    ready,
    ended,
    listen,
    send: (kind, id, payload) =>
      new Promise((resolve) => {
        if (life.over) resolve()
        else stdin.write(encodeFrame(kind, id, payload), () => resolve())
      }),
    cpuMs: () => (inner === undefined || life.over ? undefined : cpuOf(inner)),
    freeze: () => !life.over && inner !== undefined && sendSignal(inner, 'SIGSTOP'),
    thaw: () => void (inner !== undefined && sendSignal(inner, 'SIGCONT')),
    kill() {
      if (life.over || started.pid === undefined) return ended
      // Kill PID 1 of the namespace first, while its id is certainly valid, then the outer `bwrap` and its group.
      if (first !== undefined) sendSignal(first, 'SIGKILL')
      sendSignal(-started.pid, 'SIGKILL')
      for (const stream of streams) stream?.destroy()
      return ended
    },
  }
}

function startedAs(user: number | undefined, start: () => ChildProcess): ChildProcess {
  try {
    return start()
  } catch (error) {
    if (user !== undefined && (error as NodeJS.ErrnoException).code === 'EINVAL') throw new UnmappedUser(user)
    throw error
  }
}

/** Reads the process id of PID 1, which `bwrap` writes before it starts the program. Ignores later data. */
function readInfo(from: Readable, found: (pid: number) => void): void {
  let text = ''
  from.on('data', (chunk: Buffer) => {
    if (text.length > 1024) return
    text += chunk.toString('latin1')
    const pid = /"child-pid": *(\d+)[^\d]/.exec(text)?.[1]
    if (!pid) return
    text = ' '.repeat(1025)
    found(Number(pid))
  })
}

/** The most informative line of stderr. */
function reasonIn(words: string): string {
  const lines = words.split('\n').filter((line) => line.trim() !== '')
  return (lines.find((line) => /^bwrap: |Error/.test(line)) ?? lines.at(-1) ?? '').slice(0, 300)
}

const sendSignal = (pid: number, signal: NodeJS.Signals): boolean =>
  unlessGone(() => process.kill(pid, signal)) ?? false

const childPid = (pid: number): number | undefined =>
  unlessGone(() => Number.parseInt(readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1'), 10) || undefined)

const cpuOf = (pid: number): number | undefined =>
  unlessGone(() => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in parentheses may contain any character, so count the fields from the closing parenthesis.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * clockTickMs
  })

/** The result of `work`; undefined if it fails, usually because the process no longer exists. */
function unlessGone<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

export interface LaunchOptions {
  /** The module that a JavaScript child runs; `python.py` is in the same folder. */
  readonly child: URL
  /** Memory for one program, in bytes. */
  readonly memory: number
  readonly cpuMs: number
  /** Maximum message size by kind. */
  limit(kind: number): number | undefined
  readonly folders: readonly string[]
}

export interface KernelLimits {
  /** Total CPU time. */
  readonly cpuSeconds?: number
  /** Private writable memory in bytes. */
  readonly data?: number
  /** Address space in bytes. */
  readonly addresses?: number
  /** Number of processes and threads. Nothing else should run as this user, because the kernel counts per user. */
  readonly processes?: number
}

export function withKernelLimits(command: readonly string[], limits: KernelLimits): readonly string[] {
  const { cpuSeconds, processes } = limits
  // Systems other than Linux count memory differently, and their shells refuse to set these limits.
  const { data, addresses } = process.platform === 'linux' ? limits : {}
  const kibibytes = (bytes: number) => Math.ceil(bytes / 1024)
  const script = [
    // No core dumps and no writes to files.
    'ulimit -c 0',
    'ulimit -f 0',
    'ulimit -n 64',
    // Enough for the engine's recursion, where a lower limit was set.
    '{ ulimit -s 8192 || true; } 2>/dev/null',
    cpuSeconds && `ulimit -t ${Math.ceil(cpuSeconds)}`,
    data && `ulimit -d ${kibibytes(data)}`,
    addresses && `ulimit -v ${kibibytes(addresses)}`,
    // The option for the number of processes differs between shells.
    processes && `{ ulimit -u ${processes} || ulimit -p ${processes}; } 2>/dev/null`,
    'exec "$@"',
  ]
  return ['/bin/sh', '-c', script.filter(Boolean).join(' && '), 'sh', ...command]
}

/** State that all kinds of children share: whether they have started or ended, and their listener. */
export function createLifecycle() {
  const { promise: ready, resolve: started, reject } = Promise.withResolvers<void>()
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  let listener: ChildListener | undefined
  let over = false
  // Prevent an unhandled rejection if a warm child fails before anyone uses it.
  ready.catch(() => {})
  const failed = (reason: string) => reject(new Error(reason))
  return {
    ready,
    ended,
    started,
    failed,
    get listener() {
      return listener
    },
    get over() {
      return over
    },
    listen(to: ChildListener): void {
      listener = to
      if (over) to.ended()
    },
    exited(reason: string): void {
      if (over) return
      over = true
      failed(reason)
      listener?.ended()
      end()
    },
  }
}
