#!/usr/bin/env node
import type { Stats } from 'node:fs'
import { join } from 'node:path'
import { cacheHome } from '../core/home.ts'

// Check the version here: older Node versions cannot parse the other modules and would fail with an unhelpful error.
const minVersion = 24
if (Number.parseInt(process.versions.node, 10) < minVersion) {
  process.stderr.write(
    `Toolway needs Node ${minVersion}: this is Node ${process.versions.node}. Install a newer version ` +
      `(https://nodejs.org), or try npx -p node@${minVersion} -p toolway toolway\n`,
  )
  process.exit(2)
}

// Without a listener, SIGUSR1 opens Node's inspector, and anyone who can connect to the inspector can run code here.
process.on('SIGUSR1', () => {})

// SIGUSR2 replaces workers; only their primary process has another listener. Without a listener, it ends the process
// at once. Windows has no SIGUSR2: listening for it would throw.
if (process.platform !== 'win32') {
  process.on('SIGUSR2', () => {
    if (process.listenerCount('SIGUSR2') > 1) return
    process.stderr.write('Ignoring SIGUSR2: it replaces workers, so it needs `toolway serve --workers`.\n')
  })
}

// Before anything else is loaded.
enableCompileCache(cacheHome(process.env))
void import('./start.ts')

/**
 * Enables the compile cache in the user's own folder. Anyone who can write there decides which code runs: the folder is
 * private from the start, it is emptied if others could have written to it, and without a safe folder there is no cache.
 */
function enableCompileCache(cacheHome: string): void {
  // For all folders: Node also creates one, for its version.
  const umask = process.umask(0o077)
  try {
    const folder = safeFolder(cacheHome)
    if (folder !== undefined) process.getBuiltinModule('node:module').enableCompileCache(folder)
  } catch {
    // The cache only saves time.
  } finally {
    process.umask(umask)
  }
}

function safeFolder(cacheHome: string): string | undefined {
  const own = join(cacheHome, 'toolway')
  const folder = join(own, 'compiled')
  const user = process.geteuid?.()
  // Windows has no file modes to check.
  if (user === undefined) return folder
  // Not imported: in the bundle, that would load a large file before the cache is enabled.
  const { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, rmSync, statSync } =
    process.getBuiltinModule('node:fs')
  const isOwn = (found: Stats) => found.isDirectory() && found.uid === user
  const isPrivate = (path: string) => {
    const found = lstatSync(path)
    return isOwn(found) && (found.mode & 0o022) === 0
  }
  // Not recursively: where folders cannot be created, such as in /proc, Node would try forever.
  for (const path of [cacheHome, own, folder]) if (!existsSync(path)) mkdirSync(path)
  if (!isTrustedParent(statSync(cacheHome), user)) return undefined
  if (!isOwn(lstatSync(own)) || !isOwn(lstatSync(folder))) return undefined
  if (!isPrivate(own)) chmodSync(own, 0o700)
  if ([folder, ...readdirSync(folder).map((name) => join(folder, name))].every(isPrivate)) return folder
  rmSync(folder, { recursive: true })
  mkdirSync(folder)
  return folder
}

/** Whether no other user can replace our folder in this one. A group with the user's number is that user's own. */
function isTrustedParent({ mode, uid, gid }: Stats, user: number): boolean {
  if (uid !== user && uid !== 0) return false
  const isSticky = (mode & 0o1000) !== 0
  return isSticky || ((mode & 0o002) === 0 && ((mode & 0o020) === 0 || gid === user))
}
