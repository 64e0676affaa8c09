import { readFileSync } from 'node:fs'
import { readdir, readlink } from 'node:fs/promises'
import { basename } from 'node:path'

/** Whoever listens on a port, as far as the kernel tells us. */
export interface Holder {
  readonly pid?: number
  /** Of the program, without its arguments: those may hold secrets. */
  readonly program?: string
  readonly uid: number
}

/** Finds who listens on a port of this machine; undefined where the kernel does not tell. */
export async function portHolder(port: number): Promise<Holder | undefined> {
  const socket = ['tcp', 'tcp6'].flatMap((table) => listening(table, port))[0]
  if (!socket) return undefined
  const pid = await processWith(`socket:[${socket.inode}]`)
  if (pid === undefined) return { uid: socket.uid }
  const program = await programOf(pid)
  return { pid, uid: socket.uid, ...(program !== undefined && { program }) }
}

/** The name of a running program's file; undefined for one that is gone or somebody else's. */
export const programOf = (pid: number): Promise<string | undefined> =>
  readlink(`/proc/${pid}/exe`).then(basename, () => undefined)

const listens = '0A'

function listening(table: string, port: number): { readonly inode: string; readonly uid: number }[] {
  return rows(`/proc/net/${table}`).flatMap((row) => {
    const [, local = '', , state, , , , uid, , inode = ''] = row.trim().split(/\s+/)
    const theirs = Number.parseInt(local.split(':').at(-1) ?? '', 16)
    return state === listens && theirs === port ? [{ inode, uid: Number(uid) }] : []
  })
}

function rows(path: string): string[] {
  try {
    return readFileSync(path, 'latin1').split('\n').slice(1)
  } catch {
    return []
  }
}

async function processWith(target: string): Promise<number | undefined> {
  for (const pid of (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))) {
    // Those of other users cannot be looked at, and some have just ended.
    const open = await readdir(`/proc/${pid}/fd`).catch(() => [])
    const targets = await Promise.all(open.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')))
    if (targets.includes(target)) return Number(pid)
  }
  return undefined
}
