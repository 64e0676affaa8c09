import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { ServerFinding } from '../../../src/core/source-status.ts'
import type { Commands, Printed } from '../../fixtures/commands/commands.ts'
import { compiled, toolwayWords } from '../../fixtures/programs.ts'

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
  /** Where the test is not about the process. */
  readonly commands?: Commands
}

/** A configuration for which no program has to be tried: that takes longer than all the rest. */
export const withoutCode = { sandbox: { languages: [] } }

const environment = ({ cwd, env = {} }: Patient) => ({ PATH: process.env.PATH, HOME: cwd, ...compiled, ...env })

/** Runs `toolway doctor` as a user would. */
export function startDoctor(patient: Patient, ...words: string[]) {
  const { cwd, uid } = patient
  const identity = uid === undefined ? {} : { uid, gid: uid }
  const options = { cwd, env: environment(patient), ...identity }
  return spawn(process.execPath, [...toolwayWords, 'doctor', '--json', ...words], options)
}

/** Runs it in a process that is there already, if the patient has one. */
export async function runDoctor(patient: Patient, ...words: string[]): Promise<Report> {
  const { code, said, complaint } = await (patient.commands === undefined
    ? inOwnProcess(patient, words)
    : inCommands(patient.commands, patient, words))
  if (!said.startsWith('{')) throw new Error(`the doctor did not answer: ${said}${complaint}`)
  const { checks } = JSON.parse(said) as Pick<Report, 'checks'>
  return { code, checks, of: (wanted) => checks.find(({ name }) => name === wanted) }
}

async function inOwnProcess(patient: Patient, words: string[]) {
  const child = startDoctor(patient, ...words)
  const [said, complaint, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { code: code as number | null, said, complaint }
}

async function inCommands(commands: Commands, patient: Patient, words: string[]) {
  const env = environment(patient) as Record<string, string>
  const { code, printed } = await commands.run({ words: ['doctor', '--json', ...words], cwd: patient.cwd, env })
  return { code, said: printedTo('stdout', printed), complaint: printedTo('stderr', printed) }
}

const printedTo = (stream: Printed['to'], printed: readonly Printed[]) =>
  printed
    .filter(({ to }) => to === stream)
    .map((one) => one.text)
    .join('')
