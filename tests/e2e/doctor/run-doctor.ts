import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { ServerFinding } from '../../../src/core/source-status.ts'
import { compiled, toolwayMain } from '../../fixtures/programs.ts'

interface Line {
  readonly name: string
  readonly status: 'ok' | 'warning' | 'problem'
  readonly message: string
  readonly remedy?: string
  readonly details?: readonly string[]
  readonly findings?: readonly ServerFinding[]
  readonly ms: number
}

export interface Report {
  readonly code: number | null
  readonly checks: readonly Line[]
  /** The first line of a check. */
  of(name: string): Line | undefined
}

export interface Patient {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly uid?: number
}

/** A configuration for which no program has to be tried: that takes longer than all the rest. */
export const withoutCode = { sandbox: { languages: [] } }

/** Runs `toolway doctor` as a user would. */
export function startDoctor({ cwd, env = {}, uid }: Patient, ...words: string[]) {
  const own = { PATH: process.env.PATH, HOME: cwd, ...compiled, ...env }
  const identity = uid === undefined ? {} : { uid, gid: uid }
  return spawn(process.execPath, [toolwayMain, 'doctor', '--json', ...words], { cwd, env: own, ...identity })
}

export async function runDoctor(patient: Patient, ...words: string[]): Promise<Report> {
  const child = startDoctor(patient, ...words)
  const [said, complaint, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  if (!said.startsWith('{')) throw new Error(`the doctor did not answer: ${said}${complaint}`)
  const { checks } = JSON.parse(said) as Pick<Report, 'checks'>
  return { code, checks, of: (wanted) => checks.find(({ name }) => name === wanted) }
}
