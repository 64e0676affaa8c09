import { hash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { gzipSync } from 'node:zlib'

/** One file of the dashboard, in memory. */
export interface StaticFile {
  readonly type: string
  readonly etag: string
  readonly bytes: Buffer
  /** None for what does not get smaller. */
  readonly zipped: Buffer | undefined
  /** Its name changes with what is in it, so that it can be kept for ever. */
  readonly isHashed: boolean
}

/** The built dashboard, looked at once, and again when it was built anew. */
export interface StaticFolder {
  /** By its path below `/`; only what is really there has one, so that no path leads anywhere else. */
  find(path: string): StaticFile | undefined
  /** The page itself; undefined where nothing was built. */
  index(): StaticFile | undefined
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
  '.txt': 'text/plain; charset=utf-8',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
}

const hashedName = /^assets\/.*-[\w-]{8,}\.\w+$/

export function openFolder(folder: string): StaticFolder {
  const page = join(folder, 'index.html')
  let files = new Map<string, StaticFile>()
  let builtAt: number | undefined

  const look = () => {
    const now = statSync(page, { throwIfNoEntry: false })?.mtimeMs
    if (now === builtAt) return
    builtAt = now
    files = now === undefined ? new Map() : new Map(filesIn(folder))
  }

  return {
    find: (path) => files.get(path),
    index() {
      look()
      return files.get('index.html')
    },
  }
}

function filesIn(folder: string): [path: string, file: StaticFile][] {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true })
  return found.flatMap((entry) => {
    const type = types[extname(entry.name)]
    if (!entry.isFile() || type === undefined) return []
    const path = join(entry.parentPath, entry.name)
    const name = relative(folder, path).split(sep).join('/')
    return [[name, fileOf(name, type, readFileSync(path))] as [string, StaticFile]]
  })
}

function fileOf(name: string, type: string, bytes: Buffer): StaticFile {
  let zipped: Buffer | undefined
  return {
    type,
    etag: hash('sha256', bytes, 'base64url').slice(0, 22),
    bytes,
    get zipped() {
      if (/^image\/(?!svg)|font/.test(type)) return undefined
      zipped ??= gzipSync(bytes)
      return zipped
    },
    isHashed: hashedName.test(name),
  }
}
