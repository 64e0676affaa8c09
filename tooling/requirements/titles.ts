import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The title of a test or test group that names requirements. */
export interface Title {
  readonly file: string
  readonly numbers: readonly string[]
}

/** Tests and shared fixtures. */
const places = ['src/**/*.{test,fixture}.ts', 'web/src/**/*.test.ts', 'tests/**/*.ts']

/** The prefix of such a title: `F3: …`, `B10, F8: …`, `B2/G3: …`. */
const beginning = /(?<=['"`])[A-Z]\d{1,2}(?:[ ,/]+[A-Z]\d{1,2})*(?=: )/g

/** Every title that names requirements, file by file. */
export function readTitles(): readonly Title[] {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const files = globSync(places, { cwd: root }).sort()
  return files.flatMap((file) => titlesIn(readFileSync(`${root}/${file}`, 'utf8'), file))
}

/** The titles of one file that name requirements. */
export const titlesIn = (text: string, file: string): readonly Title[] =>
  (text.match(beginning) ?? []).map((numbers) => ({ file, numbers: numbers.split(/[ ,/]+/) }))
