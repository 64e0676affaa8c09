import { readFileSync } from 'node:fs'
import { jsonValue } from '../json/parse-json.ts'

/**
 * Resolves paths in the installed package. Only this module does so: builds put bundles at the top of `dist/`, so
 * relative paths differ between sources (`..`) and bundles (`.`).
 */
const isSource = import.meta.url.endsWith('.ts')
const modules = new URL(isSource ? '..' : '.', import.meta.url)

/** The URL of a file in the package, by its path from the package's root. */
export const packageFile = (path: string): URL => new URL(`../${path}`, modules)

/** The URL of a module that runs as its own process or thread. `name` is its path in `src/` without the extension. */
export const moduleFile = (name: string): URL => new URL(`${name}.${isSource ? 'ts' : 'js'}`, modules)

const { version: own } = jsonValue(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }

export const version: string = own

/** How Toolway introduces itself to clients and servers. */
export const identity = { name: 'toolway', version }
