import type { ChildListener } from '../runtime.ts'

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
