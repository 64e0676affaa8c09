import { readFileSync, readlinkSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'

/** A process and when it started: together they name it, since numbers are used again. */
export interface ProcessId {
  readonly pid: number
  /** In ticks of the kernel since it booted. */
  readonly start: string
}

/** When a living process started; undefined for one that has ended, also where nobody has fetched its end yet. */
export function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name of a program may hold anything, so that fields are counted from its end.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return /[ZXx]/.test(fields[0] as string) ? undefined : fields[19]
  } catch {
    return undefined
  }
}

export const isAlive = ({ pid, start }: ProcessId): boolean => startOf(pid) === start

/** The place in which our process numbers mean something: this machine since it booted, or a container on it. */
export function processSpace(): string | undefined {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return undefined
  }
}

/** The living processes of this user in whose environment a variable has a value that fits. */
export async function processesWith(variable: string, fits: (value: string) => boolean): Promise<ProcessId[]> {
  const found: ProcessId[] = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    // Those of other users cannot be read, and some have just ended.
    const environment = await readFile(`/proc/${name}/environ`, 'latin1').catch(() => '')
    const value = valueIn(environment, variable)
    const start = value !== undefined && fits(value) ? startOf(Number(name)) : undefined
    if (start !== undefined) found.push({ pid: Number(name), start })
  }
  return found
}

function valueIn(environment: string, variable: string): string | undefined {
  const at = `\0${environment}`.indexOf(`\0${variable}=`)
  if (at < 0) return undefined
  const from = at + variable.length + 1
  const end = environment.indexOf('\0', from)
  return environment.slice(from, end < 0 ? undefined : end)
}
