import type { Output } from '../output.ts'
import type { Checked, Status } from './finding.ts'
import { count, took } from './words.ts'

const signs: Readonly<Record<Status, string>> = { ok: '✓', warning: '!', problem: '✗' }
const colours = { ok: 'green', warning: 'yellow', problem: 'red' } as const

/** One line for each finding, what to do below it, and how it stands as a whole. */
export function printChecks(checks: readonly Checked[], ms: number, { print, paint }: Output): void {
  const width = Math.max(0, ...checks.map(({ name }) => name.length))
  for (const { name, status, message, remedy, details = [] } of checks) {
    const indent = ' '.repeat(width + 4)
    print(`${paint(colours[status], signs[status])} ${paint('dim', name.padEnd(width))}  ${message}`)
    for (const line of details) print(paint('dim', `${indent}│ ${line}`))
    if (remedy !== undefined) print(`${indent}→ ${status === 'ok' ? paint('dim', remedy) : paint('cyan', remedy)}`)
  }
  const number = (wanted: Status) => checks.filter(({ status }) => status === wanted).length
  const [problems, warnings] = [number('problem'), number('warning')]
  const verdict =
    problems + warnings === 0
      ? paint('green', 'Everything is fine.')
      : paint(problems > 0 ? 'red' : 'yellow', `${count(problems, 'problem')}, ${count(warnings, 'warning')}.`)
  print('')
  print(`${verdict} ${paint('dim', `${count(checks.length, 'line')} in ${took(ms)}`)}`)
}
