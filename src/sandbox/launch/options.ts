import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** What every way to run programs has to know. */
export interface LaunchOptions {
  /** The module that a JavaScript child is started with; `python.py` lies beside it. */
  readonly child: URL
  /** Bytes of memory of one program. */
  readonly memory: number
  readonly cpuMs: number
  /** The longest message of each kind. */
  limit(kind: number): number | undefined
  /** Folders that programs may read. */
  readonly folders: readonly string[]
}

/** Where a program is, by the PATH of this process. */
export function findProgram(name: string): string | undefined {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}

/** What the kernel itself holds a child to. */
export interface KernelLimits {
  /** Seconds on the processor, ever. */
  readonly cpuSeconds?: number
  /** Bytes of private memory that it can write to. */
  readonly data?: number
  /** Bytes of addresses, used or not. */
  readonly addresses?: number
  /** How many processes and threads its user may have; for a user that nobody else shares. */
  readonly processes?: number
}

/** The words that start a command under limits, which its children could only lower. */
export function withKernelLimits(command: readonly string[], limits: KernelLimits): readonly string[] {
  const { cpuSeconds, processes } = limits
  // Elsewhere they are not counted this way, and shells refuse to set them.
  const { data, addresses } = process.platform === 'linux' ? limits : {}
  const kibibytes = (bytes: number) => Math.ceil(bytes / 1024)
  const script = [
    // No core, no byte into any file.
    'ulimit -c 0',
    'ulimit -f 0',
    'ulimit -n 64',
    ...(cpuSeconds === undefined ? [] : [`ulimit -t ${Math.ceil(cpuSeconds)}`]),
    ...(data === undefined ? [] : [`ulimit -d ${kibibytes(data)}`]),
    ...(addresses === undefined ? [] : [`ulimit -v ${kibibytes(addresses)}`]),
    // Shells differ in the letter.
    ...(processes === undefined ? [] : [`{ ulimit -u ${processes} || ulimit -p ${processes}; } 2>/dev/null`]),
    'exec "$@"',
  ]
  return ['/bin/sh', '-c', script.join(' && '), 'sh', ...command]
}

/** Whether a child has come up: told once, either way. */
interface ChildReadiness {
  readonly promise: Promise<void>
  ready(): void
  failed(reason: string): void
}

export function createReadiness(): ChildReadiness {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  // Whoever takes the child hears of it; a spare that nobody takes concerns nobody.
  promise.catch(() => {})
  return { promise, ready: resolve, failed: (reason) => reject(new Error(reason)) }
}
