import { readFileSync } from 'node:fs'

/**
 * Resolves paths in the installed package. Only this module does so: builds put bundles at the top of `dist/`, so
 * relative paths differ between sources (`..`) and bundles (`.`).
 */
const isSource = import.meta.url.endsWith('.ts')
const modules = new URL(isSource ? '..' : '.', import.meta.url)

/** A file of the package that is not a module of the program. */
export const packageFile = (path: string): URL => new URL(`../${path}`, modules)

/** A module that is started as a process or thread, by its path in `src/` without its extension. */
export const moduleFile = (name: string): URL => new URL(`${name}.${isSource ? 'ts' : 'js'}`, modules)

const { version: own } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }

export const version: string = own
