import { lineDiff, linesOf, type MarkedLine } from '../../catalog/pins/definition.ts'
import type { DefinitionSnapshot, Pin } from '../../catalog/pins/pin-record.ts'
import { awaitsReview, latestApproval, type PinState, pinStateOf } from '../../catalog/pins/pin-state.ts'
import type { Selection } from '../../catalog/pins/pins.ts'
import { type OfflinePins, readPins } from '../../catalog/pins/pins.ts'
import { visible } from '../../catalog/scan/finding.ts'
import { scanAmong } from '../../catalog/scan/scan.ts'
import { systemClock } from '../../core/clock.ts'
import { pluralize } from '../../lib/message-text.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import { audited } from '../audited.ts'
import type { CommonOptions, OptionsOf } from '../command-table.ts'
import { createOutput, type Output, type Shell, UsageError } from '../kit.ts'
import { load, openLog } from '../load.ts'

/** The pins for this configuration, read from disk. */
async function openPins(shell: Shell, options: CommonOptions) {
  const { config } = await load(shell, options)
  const log = openLog(shell, options.log ?? 'warn')
  const mode = config.policy.pins
  return { ...readPins({ folder: config.stores.path, mode, clock: systemClock, log }), mode }
}

export async function listPins(shell: Shell, options: OptionsOf<'pins list'>): Promise<void> {
  const output = createOutput(shell, options.json)
  const { states, servers, notes, mode } = await openPins(shell, options)
  if (options.server !== undefined && !servers.includes(options.server)) throw unknownServer(options.server, servers)
  const of = <T extends { readonly server: string }>(all: readonly T[]) =>
    all.filter(({ server }) => options.server === undefined || server === options.server)
  const shown = of(states).filter((state) => !options.changed || awaitsReview(state))
  if (options.json) return output.value({ mode, pins: shown.map(asJson), servers: of(notes) })
  if (shown.length > 0) print(shown, output)
  else if (options.changed) output.note('Nothing is waiting for approval.')
  else output.note('Nothing is pinned yet: tools are pinned when a server is first listed.')
  for (const { server, moved, lostAt } of of(notes)) {
    const approve = `${shell.command} pins approve ${visible(server)}.*`
    const about = moved
      ? `${visible(server)} came from ${visible(moved.from.text)} until ${day(moved.to.at)} and now comes from ${visible(moved.to.text)}; its pins still apply.`
      : `The pins for ${visible(server)} were lost on ${day(lostAt ?? 0)}; its definitions need approval again.`
    output.warn(`${about} Run \`${approve}\` to confirm it.`)
  }
}

const asJson = ({ approvedAt, seenAt, ...state }: PinState) => ({
  ...state,
  seenAt: new Date(seenAt).toISOString(),
  approvedAt: approvedAt === undefined ? undefined : new Date(approvedAt).toISOString(),
})

function print(states: readonly PinState[], output: Output): void {
  const { paint } = output
  output.table<PinState>(states, [
    { title: 'DEFINITION', value: ({ label }) => visible(label), whole: true },
    {
      title: 'STATE',
      value: ({ state }) => state,
      style: (cell, state) => (awaitsReview(state) ? paint('yellow', cell) : cell),
    },
    { title: 'CHANGED', value: ({ changed }) => changed.map((field) => visible(field)).join(', ') },
    { title: 'FLAGS', value: ({ flags }) => flags.join(', '), style: (cell) => paint('red', cell) },
    { title: 'APPROVED', value: approvedText, style: (cell) => paint('dim', cell) },
    { title: 'HASH', value: ({ hash }) => hash.slice(0, 12), style: (cell) => paint('dim', cell) },
  ])
}

const approvedText = ({ approvedAt, approvedBy }: PinState): string =>
  approvedAt === undefined ? 'no' : `${day(approvedAt)} (${approvedBy})`

const day = (time: number): string => new Date(time).toISOString().slice(0, 10)

function unknownServer(server: string, servers: readonly string[]): UsageError {
  return new UsageError(
    `No definitions are pinned for server ${visible(server)}${didYouMean(server, servers)}`,
    'Tools are pinned when a server is first listed; `toolway pins list` shows the pins.',
  )
}

function unknownPin(label: string, states: readonly PinState[]): UsageError {
  const labels = states.map((state) => state.label)
  return new UsageError(
    `There is no pinned definition ${visible(label)}${didYouMean(label, labels)}`,
    'Names look like server.tool, prompt:server.name or instructions:server; `toolway pins list` shows them.',
  )
}

/** Shows the approved and the latest definition, their differences and the scanner's findings. */
export async function showPin(shell: Shell, label: string, options: CommonOptions): Promise<void> {
  const output = createOutput(shell, options.json)
  const pins = await openPins(shell, options)
  const found = pins.find(label)
  if (!found) throw unknownPin(label, pins.states)
  const { pin, server } = found
  const state = pinStateOf(server, pin, pins.mode)
  const approved = pin.approved.find(({ hash }) => hash === pin.seen.hash) ?? latestApproval(pin)
  const findings = (snapshot: DefinitionSnapshot | undefined) =>
    snapshot?.definition ? scanAmong(pins.names(), { ...pin, server }, snapshot.definition) : []
  const current = [...pin.approved, ...pin.pending].find(({ hash }) => hash === pin.seen.hash)
  if (options.json)
    return output.value({ ...state, approved: pin.approved, pending: pin.pending, findings: findings(current) })

  const { print, section, paint } = output
  print(`${paint('bold', visible(label))}  ${state.state}`)
  print(`Approved: ${approvedText(state)}`)
  if (!approved || pin.pending.length === 0) section('Definition', linesOf((approved ?? current)?.definition))
  for (const snapshot of pin.pending) {
    const last = snapshot.hash === pin.seen.hash ? ', most recent' : ''
    const title = `Waiting for approval since ${new Date(snapshot.at).toISOString()}${last}`
    const lines = lineDiff(approved ? linesOf(approved.definition) : [], linesOf(snapshot.definition))
    section(
      title,
      lines.map((line) => painted(line, paint)),
    )
    showFindings(snapshot)
    const command = `${shell.command} pins approve ${visible(label)} --hash ${snapshot.hash.slice(0, 16)}`
    section('To approve exactly this definition', [command])
  }
  if (pin.pending.length === 0 && current) showFindings(current)
  return

  function showFindings(snapshot: DefinitionSnapshot): void {
    const lines = findings(snapshot).map(({ kind, severity, where, excerpt }) =>
      paint('red', `${kind} (${severity}) in ${visible(where)}: ${excerpt}`),
    )
    section('Scanner findings', lines)
  }
}

const painted = ([mark, text]: MarkedLine, paint: Output['paint']): string =>
  mark === ' ' ? `  ${text}` : paint(mark === '+' ? 'green' : 'red', `${mark} ${text}`)

export async function approvePins(
  shell: Shell,
  what: string | undefined,
  options: OptionsOf<'pins approve'>,
): Promise<void> {
  const output = createOutput(shell, options.json)
  const pins = await openPins(shell, options)
  const selection = selectionFor(what, options, pins)
  const { config } = await load(shell, options)
  const approved = await audited(config, { operation: 'approve_pins', arguments: { ...selection } }, () =>
    pins.approve(selection),
  )
  if (options.json) return output.value({ approved })
  for (const { label, hash } of approved) output.print(`approved ${visible(label)} as ${hash.slice(0, 12)}`)
  if (approved.length === 0) output.note('Nothing to approve: the latest definition is already approved.')
  const others = selection.label === undefined ? [] : (pins.find(selection.label)?.pin.pending ?? [])
  const left = others.filter(({ hash }) => approved.every((one) => one.hash !== hash))
  if (left.length === 0) return
  const waiting = `Still waiting for approval under this name: ${pluralize(left.length, 'other definition')}`
  output.note(`${waiting}. See \`toolway pins show\`.`)
}

function selectionFor(
  what: string | undefined,
  { all, hash }: OptionsOf<'pins approve'>,
  pins: OfflinePins,
): Selection {
  if ((what === undefined) === (all !== true)) {
    throw new UsageError(
      'Specify what to approve: server.tool, server.* or --all.',
      '`toolway pins list --changed` shows what is waiting for approval.',
    )
  }
  if (what === undefined) {
    if (hash !== undefined) throw new UsageError('--hash needs the name of one definition.')
    return {}
  }
  const found = pins.find(what)
  if (found) return hash === undefined ? { label: what } : { label: what, hash: fullHash(hash, found.pin) }
  // If no tool has this name, `server.*` means all of the server's definitions. This comes last because a tool may be
  // named `*`.
  if (!what.endsWith('.*')) throw unknownPin(what, pins.states)
  if (hash !== undefined) throw new UsageError('--hash needs the name of one definition.')
  const server = what.slice(0, -2)
  if (!pins.servers.includes(server)) throw unknownServer(server, pins.servers)
  return { server }
}

const minHashLength = 8

function fullHash(start: string, { pending, approved }: Pin): string {
  const [one, other] = [...pending, ...approved].filter(({ hash }) => hash.startsWith(start.toLowerCase()))
  if (start.length >= minHashLength && one && !other) return one.hash
  throw new UsageError(
    `No definition with this name has a hash that starts with ${visible(start)}.`,
    `\`toolway pins show\` shows the hashes; at least ${minHashLength} characters are needed.`,
  )
}
