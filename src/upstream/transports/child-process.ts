import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { statSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import type { Clock } from '../../core/clock.ts'
import { settles } from '../../core/deadline.ts'
import type { ToolwayError } from '../../core/errors.ts'
import { type OrphanReaper, type RegisteredProcess, rememberGroup, sweepGroup } from '../../process/orphan-reaper.ts'
import { findProgram, isExistingFile, ownGroup, signalGroup, spawnArguments } from '../../process/programs.ts'
import { unsentError } from './transport-errors.ts'

export interface ServerProcessOptions {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  readonly cwd?: string | undefined
  readonly env: Readonly<Record<string, string>>
  readonly clock: Clock
  /** Ends the processes that this process leaves behind, even if Toolway is killed. */
  readonly orphanReaper?: OrphanReaper | undefined
  /** How long the process may take to exit after the end of its input, and after SIGTERM. */
  readonly closing?: { readonly endMs: number; readonly terminateMs: number }
}

/** How long to wait after SIGKILL. By then, only the kernel can delay the end of a process. */
const killedMs = 1_000

/** A running process that leads its own group. */
export class ServerProcess {
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  readonly pid: number
  /** Resolves, with "exit code 3", "SIGKILL" or similar, when the process has ended and its group has been killed. */
  readonly ended: Promise<string>
  /** Resolves when all output has been read. Other processes can keep the output open long after this one has ended. */
  readonly drained: Promise<void>
  readonly #options: ServerProcessOptions
  #isRunning = true

  /** Starts a process. Rejects with SERVER_UNAVAILABLE and advice if that fails. */
  static async start(options: ServerProcessOptions): Promise<ServerProcess> {
    await options.orphanReaper?.reaped
    const registration = options.orphanReaper?.register()
    const child = await spawnServer(options, registration?.environment)
    return new ServerProcess(options, child, registration)
  }

  private constructor(
    options: ServerProcessOptions,
    child: ChildProcessWithoutNullStreams,
    registration: RegisteredProcess | undefined,
  ) {
    this.#options = options
    this.pid = child.pid as number
    this.stdin = child.stdin
    this.stdout = child.stdout
    this.stderr = child.stderr
    rememberGroup(this.pid)
    registration?.started(this.pid)
    const ended = Promise.withResolvers<string>()
    const drained = Promise.withResolvers<void>()
    this.ended = ended.promise
    this.drained = drained.promise
    child.once('exit', (code, signal) => {
      this.#isRunning = false
      sweepGroup(this.pid)
      registration?.ended()
      ended.resolve(signal ?? `exit code ${code}`)
    })
    child.once('close', drained.resolve)
    // Ignore errors about a signal that could not be delivered: `close` sends the next signal anyway.
    child.on('error', () => {})
  }

  /** Kills the process and all its descendants at once. */
  kill(): void {
    this.#signal('SIGKILL')
  }

  /** Ends the process: closes its input, then sends SIGTERM, then SIGKILL. The signals go to the whole group. */
  async close(): Promise<void> {
    const { clock, closing: { endMs, terminateMs } = { endMs: 1_000, terminateMs: 2_000 } } = this.#options
    this.stdin.end()
    if (await settles(this.ended, endMs, clock)) return
    this.#signal('SIGTERM')
    if (await settles(this.ended, terminateMs, clock)) return
    this.#signal('SIGKILL')
    await settles(this.ended, killedMs, clock)
  }

  #signal(name: 'SIGTERM' | 'SIGKILL'): void {
    // Do not signal a process that has ended, because its process id may be reused.
    if (this.#isRunning) signalGroup(this.pid, name)
  }
}

async function spawnServer(options: ServerProcessOptions, mark?: Readonly<Record<string, string>>) {
  const { command, args, cwd, env } = options
  try {
    const environment = childEnvironment({ ...mark, ...env })
    const [file, words, how] = spawnArguments(command, args, { cwd, env: environment })
    const child = spawn(file, words, { cwd, env: environment, stdio: 'pipe', ...ownGroup, ...how })
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject))
    return child
  } catch (error) {
    throw cannotStart(options, error as NodeJS.ErrnoException)
  }
}

function cannotStart(options: ServerProcessOptions, thrown: NodeJS.ErrnoException): ToolwayError {
  const { name, command, cwd } = options
  const setting = `mcpServers.${name}`
  const error = withoutArguments(thrown)
  // For a name that is nowhere in PATH, the system reports EACCES if it cannot enter one of the folders in PATH, or if
  // one of them contains a folder of that name.
  const isInPath = () =>
    findProgram(command, { env: childEnvironment(options.env), isWanted: isExistingFile }) !== undefined
  if (error.code === 'EACCES' && !command.includes('/') && !isInPath()) error.code = 'ENOENT'
  const say = (why: string) => unsentError(name, `Could not start ${name}: ${why}`, error)
  if (cwd !== undefined && !statSync(cwd, { throwIfNoEntry: false })?.isDirectory())
    return say(`the folder ${cwd} does not exist. Create it, or correct ${setting}.cwd.`)
  if (error.code === 'ENOENT')
    return say(`the command "${command}" was not found. Install it, or give its full path in ${setting}.command.`)
  if (error.code === 'EACCES')
    return say(`the command "${command}" is not executable. Make it executable, or correct ${setting}.command.`)
  if (error.code === 'EMFILE' || error.code === 'ENFILE')
    return say(`too many files are open (${error.code}). Raise the limit with ulimit -n, or LimitNOFILE= in systemd.`)
  if (error.code === 'EAGAIN' || error.code === 'ENOMEM')
    return say(`the system has no room for another process (${error.code}). Raise its limits, or run fewer servers.`)
  return say(`the command "${command}" failed (${error.message}). Check ${setting}.`)
}

/** Node's error without the process's arguments, which may contain secrets. */
function withoutArguments(error: NodeJS.ErrnoException): NodeJS.ErrnoException {
  const [message] = error.message.split(' Received ', 1)
  return Object.assign(new Error(message), error.code !== undefined && { code: error.code })
}

/** Variables that name trusted certificates, which are needed behind a proxy that inspects TLS. */
const certificateVariables = 'NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE'

/** Inherited variables, which programs need and which do not contain secrets. */
const passedOn: Readonly<Record<'posix' | 'windows', RegExp>> = {
  posix: new RegExp(
    `^(HOME|LANG|LANGUAGE|LC_[A-Z]+|LOGNAME|PATH|SHELL|TERM|TMPDIR|TZ|USER|XDG_[A-Z_]+|${certificateVariables})$`,
  ),
  windows: new RegExp(
    `^(APPDATA|COMSPEC|HOMEDRIVE|HOMEPATH|LOCALAPPDATA|PATH|PATHEXT|PROCESSOR_ARCHITECTURE|PROGRAM(DATA|FILES(\\(X86\\))?)|SYSTEMDRIVE|SYSTEMROOT|TEMP|TMP|USERNAME|USERPROFILE|WINDIR|${certificateVariables})$`,
    'i',
  ),
}

/** The environment of a child process: a few inherited variables, then the configured ones. */
export function childEnvironment(
  configured: Readonly<Record<string, string>>,
  ours: Readonly<Record<string, string | undefined>> = process.env,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const pattern = passedOn[platform === 'win32' ? 'windows' : 'posix']
  const environment: Record<string, string> = {}
  // On Windows, PATH and Path are one variable.
  const overridden =
    platform === 'win32' ? new Set(Object.keys(configured).map((name) => name.toUpperCase())) : undefined
  for (const [name, value] of Object.entries(ours)) {
    // Skip exported shell functions, which are code rather than settings.
    if (value === undefined || !pattern.test(name) || value.startsWith('()')) continue
    if (!overridden?.has(name.toUpperCase())) environment[name] = value
  }
  return { ...environment, ...configured }
}
