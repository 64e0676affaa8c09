import { spawnSync } from 'node:child_process'

const isWindows = process.platform === 'win32'
const living = new Set<number>()
let watching = false

/** Remembers a group, so that none outlives us even where nobody disposed of it. */
export function rememberGroup(leader: number): void {
  living.add(leader)
  if (watching) return
  watching = true
  process.once('exit', () => {
    for (const pid of living) signalGroup(pid, 'SIGKILL')
  })
}

/** Kills what a leader that has ended left behind in its group, and forgets the group. */
export function sweepGroup(leader: number): void {
  if (!living.delete(leader)) return
  if (!isWindows) signalGroup(leader, 'SIGKILL')
}

/** Reaches a process and all that it started, unless they have left its group. A group that is gone is fine. */
export function signalGroup(leader: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (isWindows) {
    // Windows knows no groups and no polite signal, but it can walk the tree.
    spawnSync('taskkill', ['/pid', String(leader), '/T', '/F'], { windowsHide: true, stdio: 'ignore' })
    return
  }
  try {
    process.kill(-leader, signal)
  } catch {
    // Nobody is left, which is what was wanted.
  }
}
