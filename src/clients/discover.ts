import type { ClientKind } from '../config/import/client-kind.ts'
import { readServers, type ServersFile } from '../config/import/read-servers.ts'
import { isFile } from '../config/locate.ts'
import { homeOf } from '../core/home.ts'
import { type ClientFile, clientFiles, type Surroundings } from './places.ts'

/** A client's file that is there, and what it holds. */
export interface FoundFile extends ClientFile {
  readonly content: ServersFile
}

/** Finds the files of these clients, or of all, and reads their servers. */
export async function discover(around: Surroundings, clients?: readonly ClientKind[]): Promise<FoundFile[]> {
  const found: FoundFile[] = []
  for (const file of clientFiles(around, clients)) {
    if (await isFile(file.path))
      found.push({ ...file, content: await readServers(file.path, homeOf(around.env), file.client) })
  }
  return found
}
