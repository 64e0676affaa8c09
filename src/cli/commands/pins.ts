import type { OfflinePins } from '../../catalog/pins/offline.ts'
import { readPins } from '../../catalog/pins/offline.ts'
import { isOpen, type PinState, type PinsMode } from '../../catalog/pins/state.ts'
import { visible } from '../../catalog/scan/visible.ts'
import { systemClock } from '../../core/clock.ts'
import { didYouMean } from '../../core/near.ts'
import { createLog } from '../../telemetry/log.ts'
import { type ExitCode, exit } from '../exit.ts'
import { type CommonOptions, load } from '../load.ts'
import { createOutput, type Output } from '../output.ts'
import { type Shell, spelling } from '../shell.ts'
import { table } from '../table.ts'
import { UsageError } from '../usage.ts'

export interface PinsOptions extends CommonOptions {
  readonly server?: string
  readonly changed?: boolean
}

/** The pins of this configuration, from disk alone. */
export async function openPins(
  shell: Shell,
  options: CommonOptions,
): Promise<OfflinePins & { readonly mode: PinsMode }> {
  const { config } = await load(shell, options)
  const log = createLog({
    level: options.log ?? 'warn',
    destination: shell.stderr,
    pretty: shell.stderr.isTTY === true,
  })
  const mode = config.policy.pins
  return { ...(await readPins({ folder: config.stores.path, mode, now: systemClock.now(), log })), mode }
}

/** Lists the definitions that are pinned, and how each is. */
export async function listPins(shell: Shell, options: PinsOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const { states, servers, notes, mode } = await openPins(shell, options)
  if (options.server !== undefined && !servers.includes(options.server)) throw unknownServer(options.server, servers)
  const of = <T extends { readonly server: string }>(all: readonly T[]) =>
    all.filter(({ server }) => options.server === undefined || server === options.server)
  const shown = of(states).filter((state) => !options.changed || isOpen(state))
  if (options.json) {
    output.value({ mode, pins: shown.map(asJson), servers: of(notes) })
    return exit.ok
  }
  if (shown.length > 0) print(shown, output)
  else
    output.note(
      options.changed
        ? 'Nothing waits for approval.'
        : 'Nothing is pinned yet: pins come with the first listing of a server.',
    )
  for (const { server, moved, lostAt } of of(notes)) {
    const approve = `${spelling(shell.env)} pins approve ${visible(server)}.*`
    const about = moved
      ? `${visible(server)} came from ${visible(moved.from.text)} and comes from ${visible(moved.to.text)} since ${day(moved.to.at)}; its pins still hold.`
      : `The pins of ${visible(server)} were lost on ${day(lostAt ?? 0)}; nothing of it is trusted at first sight.`
    output.note(output.paintNote('yellow', `${about} \`${approve}\` takes note of it.`))
  }
  return exit.ok
}

const asJson = ({ approvedAt, seenAt, ...state }: PinState) => ({
  ...state,
  seenAt: new Date(seenAt).toISOString(),
  ...(approvedAt !== undefined && { approvedAt: new Date(approvedAt).toISOString() }),
})

function print(states: readonly PinState[], { print, paint, width }: Output): void {
  const lines = table<PinState>(
    [
      { title: 'DEFINITION', value: ({ label }) => visible(label), whole: true },
      { title: 'STATE', value: stateText, style: (cell, state) => (isOpen(state) ? paint('yellow', cell) : cell) },
      { title: 'CHANGED', value: ({ changed }) => changed.map((field) => visible(field)).join(', ') },
      { title: 'FLAGS', value: ({ flags }) => flags.join(', '), style: (cell) => paint('red', cell) },
      { title: 'APPROVED', value: approvedText, style: (cell) => paint('dim', cell) },
      { title: 'HASH', value: ({ hash }) => hash.slice(0, 12), style: (cell) => paint('dim', cell) },
    ],
    states,
    { width, heading: (title) => paint('dim', title) },
  )
  for (const line of lines) print(line)
}

export const stateText = ({ condition, quarantined }: PinState): string =>
  quarantined ? `${condition}, quarantined` : condition

export const approvedText = ({ approvedAt, approvedBy }: PinState): string =>
  approvedAt === undefined ? 'no' : `${day(approvedAt)} (${approvedBy})`

export const day = (time: number): string => new Date(time).toISOString().slice(0, 10)

export function unknownServer(server: string, servers: readonly string[]): UsageError {
  return new UsageError(
    `Nothing is pinned of a server ${visible(server)}${didYouMean(server, servers)}`,
    'Pins come with the first listing of a server; `toolway pins list` shows them.',
  )
}

export function unknownPin(label: string, states: readonly PinState[]): UsageError {
  const labels = states.map((state) => state.label)
  return new UsageError(
    `There is no pinned definition ${visible(label)}${didYouMean(label, labels)}`,
    'It is server.tool, prompt:server.name or instructions:server, as `toolway pins list` shows it.',
  )
}
