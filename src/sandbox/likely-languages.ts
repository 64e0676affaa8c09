import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Language } from '../core/executor.ts'

/** The languages that can most likely be run here, without trying it: Python only where there is a `bwrap`. */
export function likelyLanguages(languages: readonly Language[], path = process.env.PATH ?? ''): readonly Language[] {
  const wrapped = path.split(delimiter).some((folder) => folder !== '' && existsSync(join(folder, 'bwrap')))
  return wrapped ? languages : languages.filter((language) => language !== 'python')
}
