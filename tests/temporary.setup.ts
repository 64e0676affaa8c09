import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Puts the temporary files of tests into memory where there is enough of it: tests write many small files and
 * delete them, which takes 4 % of the CPU time of the stories if the files are on a disk. `TMPDIR` overrides the place. Files
 * of killed processes are deleted at the end, too.
 */
export default function setup(): (() => void) | undefined {
  const folder = process.env.TMPDIR === undefined ? makeInMemory() : undefined
  if (folder === undefined) return undefined
  process.env.TMPDIR = folder
  return () => rmSync(folder, { recursive: true, force: true })
}

const memory = '/dev/shm'

function makeInMemory(): string | undefined {
  if (process.platform !== 'linux') return undefined
  try {
    const { bavail, bsize } = statfsSync(memory)
    if (bavail * bsize < 4 * 1024 ** 3) return undefined
    const folder = mkdtempSync(join(memory, 'toolway-'))
    // PostgreSQL and sandboxes run as other users.
    chmodSync(folder, 0o755)
    if (runsPrograms(folder)) return folder
    rmSync(folder, { recursive: true })
  } catch {
    // There is none, or it is not ours to use.
  }
  return undefined
}

/** Tests start programs that they write. Containers may forbid that in shared memory. */
function runsPrograms(folder: string): boolean {
  const program = join(folder, 'program')
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o700 })
  const { status } = spawnSync(program)
  rmSync(program)
  return status === 0
}
