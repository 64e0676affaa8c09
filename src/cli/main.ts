#!/usr/bin/env node
import { cacheHome } from '../core/home.ts'
import { enableCompileCache } from './compile-cache.ts'

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
