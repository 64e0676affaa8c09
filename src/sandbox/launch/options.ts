import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Options shared by all isolation tiers. */
export interface LaunchOptions {
  /** The module that a JavaScript child runs; `python.py` is in the same folder. */
  readonly child: URL
  /** Memory of one program, in bytes. */
  readonly memory: number
  readonly cpuMs: number
  /** Maximum message size by kind. */
  limit(kind: number): number | undefined
  /** Folders that programs may read. */
  readonly folders: readonly string[]
}

/** Looks up a program in PATH. */
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

/** Resource limits enforced by the kernel. */
export interface KernelLimits {
  /** Total CPU time. */
  readonly cpuSeconds?: number
  /** Private writable memory in bytes. */
  readonly data?: number
  /** Address space in bytes. */
  readonly addresses?: number
  /** Processes and threads of the user, which must not be shared. */
  readonly processes?: number
}

/** Wraps a command in a shell that sets the limits. */
export function withKernelLimits(command: readonly string[], limits: KernelLimits): readonly string[] {
  const { cpuSeconds, processes } = limits
  // Other systems count differently, and their shells refuse to set these.
  const { data, addresses } = process.platform === 'linux' ? limits : {}
  const kibibytes = (bytes: number) => Math.ceil(bytes / 1024)
  const script = [
    // No core dumps and no writes to files.
    'ulimit -c 0',
    'ulimit -f 0',
    'ulimit -n 64',
    ...(cpuSeconds === undefined ? [] : [`ulimit -t ${Math.ceil(cpuSeconds)}`]),
    ...(data === undefined ? [] : [`ulimit -d ${kibibytes(data)}`]),
    ...(addresses === undefined ? [] : [`ulimit -v ${kibibytes(addresses)}`]),
    // The option differs between shells.
    ...(processes === undefined ? [] : [`{ ulimit -u ${processes} || ulimit -p ${processes}; } 2>/dev/null`]),
    'exec "$@"',
  ]
  return ['/bin/sh', '-c', script.join(' && '), 'sh', ...command]
}

/** Resolves or rejects once the child has started. */
interface ChildReadiness {
  readonly promise: Promise<void>
  ready(): void
  failed(reason: string): void
}

export function createReadiness(): ChildReadiness {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  // An unused warm child may fail silently.
  promise.catch(() => {})
  return { promise, ready: resolve, failed: (reason) => reject(new Error(reason)) }
}
