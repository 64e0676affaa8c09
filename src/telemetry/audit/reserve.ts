import { type Files, writeWhole } from './files.ts'

/**
 * Space that is kept for the end of writes that are already under way: a file full of nothing, given up when the disk
 * is full. Unlike a look at the free space now and then it also knows quotas, and no other program can be quicker.
 */
export interface Reserve {
  /** While it is not, only what must be written is written. */
  readonly held: boolean
  /** Gives the space up; false if there was none to give up. */
  release(): boolean
  /** Takes the space again; false if there is none. */
  restore(): boolean
  close(): void
}

const pieceBytes = 64 * 1024

export function openReserve(path: string, bytes: number, files: Files): Reserve {
  const fd = files.openSync(path, 'a', 0o600)
  const empty = () => files.ftruncateSync(fd, 0)
  let held = files.length(fd) === bytes

  const restore = () => {
    if (held) return true
    try {
      empty()
      for (let left = bytes; left > 0; left -= pieceBytes) {
        writeWhole(files, fd, Buffer.alloc(Math.min(left, pieceBytes)))
      }
      held = true
    } catch {
      try {
        empty()
      } catch {
        // What is left of it is emptied when it is tried again.
      }
    }
    return held
  }
  restore()
  return {
    get held() {
      return held
    },
    release: () => {
      if (!held) return false
      held = false
      empty()
      return true
    },
    restore,
    close: () => files.closeSync(fd),
  }
}
