/**
 * Where this package lies. Asked here alone: a build puts modules together, and only this one is sure to stay one folder
 * below the package's own.
 */
const here = new URL('.', import.meta.url)
const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'

/** A file of the package that is not a module of the program. */
export const packageFile = (path: string): URL => new URL(`../${path}`, here)

/** A module that is started by itself, by its path in `src/` without its ending. */
export const moduleFile = (name: string): URL => new URL(`${name}.${extension}`, here)
