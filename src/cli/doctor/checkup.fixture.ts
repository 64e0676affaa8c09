import { folder } from '../folder.fixture.ts'
import { type Surroundings, toolway } from '../kit.fixture.ts'
import type { CheckResult } from './finding.ts'

/** The answer of `doctor --json`. */
export interface Checkup {
  readonly code: number
  readonly ok: boolean
  readonly checks: readonly CheckResult[]
  /** The findings of one check. */
  of(name: string): readonly CheckResult[]
  /** All that was written. */
  readonly said: string
}

/** Runs the doctor somewhere. */
export async function checkup(at: Surroundings, ...words: string[]): Promise<Checkup> {
  const { code, stdout, stderr } = await toolway(['doctor', '--json', ...words], at)
  const answer = JSON.parse(stdout) as Pick<Checkup, 'ok' | 'checks'>
  return { code, ...answer, said: stdout + stderr, of: (wanted) => answer.checks.filter(({ name }) => name === wanted) }
}

/** A folder with this configuration, whose state stays in it and whose port is any free one; no code is run for it. */
export const configured = (config: object = {}) =>
  folder({
    'toolway.json': { server: { port: 0 }, stores: { path: './state' }, sandbox: { languages: [] }, ...config },
  })
