import { readFileSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Config } from '../../config/schema.ts'
import { lanesOf } from '../../telemetry/audit/layout.ts'
import { type Check, type Finding, ok, problem, warning } from './finding.ts'
import { programOf } from './port-holder.ts'
import { isForeign, ownAgain } from './private-file.ts'
import { count } from './words.ts'

/** Whether the audit log is in our hands: its files our own, its locks held by Toolway or by nobody. */
export const auditLockCheck = ({ audit: { path: folder } }: Config, short: (path: string) => string): Check => ({
  name: 'audit.lock',
  async run() {
    const lanes = lanesOf(folder)
    const foreign = await foreignFile(folder, lanes)
    if (foreign !== undefined) {
      return problem(`${short(foreign)} belongs to another user, so nothing can be recorded there`, ownAgain(folder))
    }
    const holders = lanes.flatMap((lane) => {
      const pid = holderOf(join(folder, lane, 'lock'))
      return pid === undefined ? [] : [{ lane, pid }]
    })
    const findings = await Promise.all(holders.map(holderFinding))
    const strange = findings.filter((finding) => finding !== undefined)
    if (strange.length > 0) return strange
    if (holders.length === 0) return ok('nobody writes to it now')
    const processes = [...new Set(holders.map(({ pid }) => pid))].join(', ')
    return ok(`${count(holders.length, 'lane')} in use, by Toolway (process ${processes})`)
  },
})

async function foreignFile(folder: string, lanes: readonly string[]): Promise<string | undefined> {
  for (const lane of lanes) {
    for (const name of ['', ...(await readdir(join(folder, lane)))]) {
      const path = join(folder, lane, name)
      if (isForeign(statSync(path, { throwIfNoEntry: false })?.uid ?? process.getuid?.() ?? 0)) return path
    }
  }
  return undefined
}

/** Where SQLite locks a file: nobody else means these bytes. */
const lockStart = 0x40000000

/**
 * The process that holds the lock of a lane, as the kernel lists it. Opening the file to find out would be wrong: that
 * takes the lane from whoever starts at the same moment.
 */
function holderOf(path: string): number | undefined {
  const inode = statSync(path, { throwIfNoEntry: false })?.ino
  for (const row of lockRows()) {
    const [, , , , pid, file = '', start] = row.split(/\s+/)
    if (file.split(':')[2] === `${inode}` && Number(start) >= lockStart) return Number(pid)
  }
  return undefined
}

function lockRows(): string[] {
  try {
    return readFileSync('/proc/locks', 'latin1').split('\n')
  } catch {
    return []
  }
}

async function holderFinding({
  lane,
  pid,
}: {
  readonly lane: string
  readonly pid: number
}): Promise<Finding | undefined> {
  const program = await programOf(pid)
  if (program === basename(process.execPath)) return undefined
  const who = program === undefined ? `process ${pid}, which is not ours` : `${program} (process ${pid})`
  return warning(`lane ${lane} is held by ${who}; Toolway writes to another one`, `ps -fp ${pid}`)
}
