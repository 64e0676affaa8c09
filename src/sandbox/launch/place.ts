import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** What every way to run programs has to know. */
export interface Place {
  /** The module that a JavaScript child is started with; `python.py` lies beside it. */
  readonly child: URL
  /** Bytes of memory of one program. */
  readonly memory: number
  readonly cpuMs: number
  /** The longest message of each kind. */
  limit(kind: number): number | undefined
  /** Folders that programs may read. */
  readonly folders: readonly string[]
}

/** Where a program is, by the PATH of this process. */
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
