/** glibc's own initial value. Set explicitly, it stays: otherwise each large block that is freed raises it. */
export const mallocVariables = { MALLOC_MMAP_THRESHOLD_: String(128 * 1024) }

/**
 * Limits the young generation to 8 MB. memory.ts does that too, but only after the program is loaded: until then, almost
 * everything survives, and the young generation grows to 17 MB, which it keeps.
 */
export const youngLimit = '--max-semi-space-size=4'

/**
 * Replaces this process by one of the same program whose memory allocator returns large blocks to the system. glibc
 * would keep up to 32 MiB of freed blocks, in pieces: after results of 1 MiB that was a fifth of a gateway's memory. It
 * reads the setting only when a process starts, and so does V8 for `youngLimit`. The process id, stdin, stdout and stderr
 * stay the same.
 */
export function limitMalloc(command: string | undefined, env = process.env): void {
  const isGateway = command === 'serve' || command === 'stdio'
  if (!isGateway || process.platform !== 'linux' || env.MALLOC_MMAP_THRESHOLD_ !== undefined) return
  // A restart would close the channel to the parent process. A child inherits the setting, so it needs no restart.
  if (process.channel) return
  try {
    const args = [process.execPath, youngLimit, ...process.execArgv, ...process.argv.slice(1)]
    process.execve?.(process.execPath, args, { ...env, ...mallocVariables })
  } catch {
    // Not allowed here: the gateway needs more memory, but works.
  }
}
