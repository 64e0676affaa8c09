#!/usr/bin/env node
import * as nodeModule from 'node:module'
import { isAbsolute, join } from 'node:path'
import { homeOf } from '../core/home.ts'

// An older one could not even read the rest, and would say so in its own words.
const oldest = 24
if (Number.parseInt(process.versions.node, 10) < oldest) {
  process.stderr.write(
    `Toolway needs Node ${oldest} or newer, and this is ${process.versions.node}. Install a newer one ` +
      `(https://nodejs.org), or try npx -p node@${oldest} -p toolway toolway\n`,
  )
  process.exit(2)
}

// Node opens its inspector on this signal, and whoever reaches its port can run code here. A listener replaces that.
process.on('SIGUSR1', () => {})

// Before anything else is loaded: what was compiled once is not compiled again at the next start. In the user's own
// folder, because whoever can write there decides what runs.
const { XDG_CACHE_HOME: given = '' } = process.env
nodeModule.enableCompileCache(
  join(isAbsolute(given) ? given : join(homeOf(process.env), '.cache'), 'toolway', 'compiled'),
)
await import('./start.ts')
