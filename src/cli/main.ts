#!/usr/bin/env node
import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

// Before anything else is loaded: what was compiled once is not compiled again at the next start. In the user's own
// folder, because whoever can write there decides what runs.
const { XDG_CACHE_HOME: given = '', HOME = homedir() } = process.env
enableCompileCache(join(isAbsolute(given) ? given : join(HOME, '.cache'), 'toolway', 'compiled'))
await import('./start.ts')
