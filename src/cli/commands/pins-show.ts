import { type Line, lineDiff, linesOf } from '../../catalog/pins/changes.ts'
import type { Sight } from '../../catalog/pins/record.ts'
import { latestApproval, stateOf } from '../../catalog/pins/state.ts'
import { scanDefinition } from '../../catalog/scan/scan.ts'
import { visible } from '../../catalog/scan/visible.ts'
import { type ExitCode, exit } from '../exit.ts'
import type { CommonOptions } from '../load.ts'
import { createOutput, type Output } from '../output.ts'
import { type Shell, spelling } from '../shell.ts'
import { approvedText, openPins, stateText, unknownPin } from './pins.ts'

/** Shows a pinned definition: what is approved, what was seen last, how they differ and what the scanner says. */
export async function showPin(shell: Shell, label: string, options: CommonOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const pins = await openPins(shell, options)
  const found = pins.find(label)
  if (!found) throw unknownPin(label, pins.states)
  const { pin, server } = found
  const state = stateOf(server, pin, pins.mode)
  const approved = pin.approved.find(({ hash }) => hash === pin.seen.hash) ?? latestApproval(pin)
  const findings = (sight: Sight | undefined) => (sight?.definition ? scanDefinition(sight.definition) : [])
  const current = [...pin.approved, ...pin.pending].find(({ hash }) => hash === pin.seen.hash)
  if (options.json) {
    output.value({ ...state, approved: pin.approved, pending: pin.pending, findings: findings(current) })
    return exit.ok
  }

  const { print, paint } = output
  print(`${paint('bold', visible(label))}  ${stateText(state)}`)
  print(`Approved: ${approvedText(state)}`)
  if (!approved || pin.pending.length === 0) section('Definition', linesOf((approved ?? current)?.definition), output)
  for (const sight of pin.pending) {
    const last = sight.hash === pin.seen.hash ? ', seen last' : ''
    const title = `Waiting for approval since ${new Date(sight.at).toISOString()}${last}`
    const lines = lineDiff(approved ? linesOf(approved.definition) : [], linesOf(sight.definition))
    section(
      title,
      lines.map((line) => painted(line, paint)),
      output,
    )
    showFindings(sight, output)
    const command = `${spelling(shell.env)} pins approve ${visible(label)} --hash ${sight.hash.slice(0, 16)}`
    section('To approve exactly this one', [command], output)
  }
  if (pin.pending.length === 0 && current) showFindings(current, output)
  return exit.ok

  function showFindings(sight: Sight, to: Output): void {
    const lines = findings(sight).map(
      ({ kind, severity, where, excerpt }) => `${kind} (${severity}) in ${visible(where)}: ${excerpt}`,
    )
    if (lines.length > 0)
      section(
        'What the scanner found',
        lines.map((line) => to.paint('red', line)),
        to,
      )
  }
}

function section(title: string, lines: readonly string[], { print, paint }: Output): void {
  print('')
  print(paint('bold', title))
  for (const line of lines) print(`  ${line}`)
}

const painted = ([mark, text]: Line, paint: Output['paint']): string => {
  const line = `${mark} ${text}`
  return mark === '+' ? paint('green', line) : mark === '-' ? paint('red', line) : line
}
