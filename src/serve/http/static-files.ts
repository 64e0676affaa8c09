import { hash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { extname, join, relative, sep } from 'node:path'
import { gzipSync } from 'node:zlib'
import { decodePercent } from '../../lib/url.ts'
import type { Hosts } from './hosts.ts'

/** Security headers for the dashboard: only its own files may load; framing, forms and other origins are forbidden. */
const pageHeaders = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
} as const

/**
 * Serves the dashboard's files. The dashboard is a single-page application, so every page path serves index.html. The
 * returned function returns false if there is no file for the path. `endpoint` is shown on the error page.
 */
export function createDashboardFiles(folder: string, { endpoint, hosts }: { endpoint: string; hosts: Hosts }) {
  const page = join(folder, 'index.html')
  /** All files, so that no path can lead outside the folder. They are read again after a build. */
  let files = new Map<string, StaticFile>()
  let builtAt: number | undefined
  const readBuilt = () => {
    const now = statSync(page, { throwIfNoEntry: false })?.mtimeMs
    if (now === builtAt) return
    builtAt = now
    files = now === undefined ? new Map() : new Map(staticFilesIn(folder))
  }

  return (request: IncomingMessage, response: ServerResponse, path: string): boolean => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return false
    readBuilt()
    const file =
      files.get(decodePercent(path.slice(1))) ?? (isPage(request, path) ? files.get('index.html') : undefined)
    if (!file && !isPage(request, path)) return false
    hosts.check(request.headers.host, request.headers.origin)
    if (file) {
      sendFile(request, response, file)
      return true
    }
    const text = notBuilt(endpoint)
    const headers = { ...pageHeaders, 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store' }
    response.writeHead(404, { ...headers, 'Content-Length': Buffer.byteLength(text) }).end(text)
    return true
  }
}

/** Whether the request is a browser navigating to a page. Other requests for unknown paths get a 404. */
function isPage({ headers }: IncomingMessage, path: string): boolean {
  if (path === '/') return true
  return !path.startsWith('/assets/') && !path.startsWith('/.') && /\btext\/html\b/.test(headers.accept ?? '')
}

function sendFile({ headers }: IncomingMessage, response: ServerResponse, file: StaticFile): void {
  const zipped = /\bgzip\b/.test(String(headers['accept-encoding'])) ? file.zipped : undefined
  const etag = `"${file.etag}${zipped ? '-gzip' : ''}"`
  const shared = {
    ...pageHeaders,
    ETag: etag,
    Vary: 'Accept-Encoding',
    'Cache-Control': file.isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
  }
  if (isKnown(headers['if-none-match'], etag)) {
    response.writeHead(304, shared).end()
    return
  }
  const body = zipped ?? file.bytes
  const encoding = zipped ? { 'Content-Encoding': 'gzip' } : {}
  response
    .writeHead(200, { ...shared, ...encoding, 'Content-Type': file.type, 'Content-Length': body.length })
    .end(body)
}

const isKnown = (given: string | undefined, etag: string): boolean =>
  (given ?? '').split(',').some((one) => one.trim().replace(/^W\//, '') === etag)

const notBuilt = (endpoint: string): string =>
  [
    'The dashboard is not built.',
    '',
    'Build it with "npm run build" and reload this page.',
    `The MCP endpoint is ${endpoint}; the admin API is /admin/api, and /admin/api/openapi.json describes it.`,
    '',
  ].join('\n')

interface StaticFile {
  readonly type: string
  readonly etag: string
  readonly bytes: Buffer
  /** The compressed content; undefined for file types that do not benefit from compression. */
  readonly zipped: Buffer | undefined
  /** True if the name contains a content hash, so that caches may keep the file permanently. */
  readonly isHashed: boolean
}

const mediaTypes: Readonly<Record<string, string>> = {
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

const hashedFileName = /^assets\/.*-[\w-]{8,}\.\w+$/

function staticFilesIn(folder: string): [path: string, file: StaticFile][] {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true })
  return found.flatMap((entry) => {
    const type = mediaTypes[extname(entry.name)]
    if (!entry.isFile() || type === undefined) return []
    const path = join(entry.parentPath, entry.name)
    const name = relative(folder, path).split(sep).join('/')
    return [[name, staticFile(name, type, readFileSync(path))] as [string, StaticFile]]
  })
}

function staticFile(name: string, type: string, bytes: Buffer): StaticFile {
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
    isHashed: hashedFileName.test(name),
  }
}
