import { readdirSync, readFileSync } from 'node:fs'
import { cpus } from 'node:os'

/** Linux counts CPU time in hundredths of a second there, whatever its own clock is. */
const tickMs = 10

/** The fields of /proc/PID/stat after the command, which may contain anything. */
function statOf(pid: number): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

/** CPU time of a process with all its threads so far. */
export function cpuMsOf(pid: number): number {
  const stat = statOf(pid)
  return (Number(stat[11] ?? 0) + Number(stat[12] ?? 0)) * tickMs
}

/** Resident memory of a process in bytes. */
export function residentBytesOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024
}

export const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

/** A process and all below it that still live. */
function familyOf(pid: number): number[] {
  const parents = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), parent: Number(statOf(Number(name))[1]) }))
  const found = [pid]
  for (const elder of found) for (const one of parents) if (one.parent === elder) found.push(one.pid)
  return found
}

/** What the whole machine has been busy with so far, all cores together, waiting for its own turn on the host included. */
function busyMs(): number {
  const [, ...fields] = (readFileSync('/proc/stat', 'latin1').split('\n')[0] as string).split(/\s+/).map(Number)
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields
  return (user + nice + system + irq + softirq + steal) * tickMs
}

/** Starts to watch what others do to this machine; the answer is their share of it since then, from 0 to 1. */
export function watchOthers(): () => number {
  const ours = () => familyOf(process.pid).reduce((sum, pid) => sum + cpuMsOf(pid), 0)
  const [start, busy, own] = [performance.now(), busyMs(), ours()]
  return () => {
    const others = busyMs() - busy - (ours() - own)
    return Math.max(0, Math.min(1, others / ((performance.now() - start) * cpus().length)))
  }
}
