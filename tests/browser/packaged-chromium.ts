import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync } from 'node:zlib'

const root = fileURLToPath(new URL('../..', import.meta.url))
const packageFolder = join(root, 'node_modules/@sparticuz/chromium')

/** The headless shell of an npm package. It needs a quarter less CPU time than that of Debian, and exists for x64 only. */
const isForThisMachine = process.platform === 'linux' && process.arch === 'x64' && existsSync(packageFolder)

/** Where it is unpacked; undefined if it is not, because it cannot run here. */
export function packagedChromium(): string | undefined {
  const file = unpackedFile()
  return file !== undefined && existsSync(file) ? file : undefined
}

/** Unpacks it, unless it is unpacked already or lacks libraries of the machine, which other browsers bring along. */
export function unpackChromium(): void {
  const file = unpackedFile()
  if (file === undefined || existsSync(file)) return
  // Several runs may do this at the same time.
  const unfinished = `${file}.${process.pid}`
  mkdirSync(dirname(file), { recursive: true })
  try {
    const packed = readFileSync(join(packageFolder, 'bin/chromium.br'))
    writeFileSync(unfinished, brotliDecompressSync(packed), { mode: 0o755 })
    execFileSync(unfinished, ['--version'], { stdio: 'pipe' })
    renameSync(unfinished, file)
  } catch (error) {
    rmSync(unfinished, { force: true })
    process.stderr.write(`Browser tests use another browser than that of @sparticuz/chromium: ${error}\n`)
  }
}

function unpackedFile(): string | undefined {
  if (!isForThisMachine) return undefined
  const { version } = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as { version: string }
  return join(root, 'node_modules/.cache/toolway', `chromium-${version}`, 'headless-shell')
}
