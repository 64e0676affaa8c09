import type { Selection } from '../../catalog/pins/approve.ts'
import type { OfflinePins } from '../../catalog/pins/offline.ts'
import { visible } from '../../catalog/scan/visible.ts'
import { audited } from '../audited.ts'
import { type ExitCode, exit } from '../exit.ts'
import { type CommonOptions, load } from '../load.ts'
import { createOutput } from '../output.ts'
import type { Shell } from '../shell.ts'
import { UsageError } from '../usage.ts'
import { openPins, unknownPin, unknownServer } from './pins.ts'

export interface ApproveOptions extends CommonOptions {
  readonly all?: boolean
  readonly hash?: string
}

/** Lets through the definitions that were seen last. */
export async function approvePins(shell: Shell, what: string | undefined, options: ApproveOptions): Promise<ExitCode> {
  const output = createOutput(shell, options.json)
  const pins = await openPins(shell, options)
  const selection = selectionFor(what, options, pins)
  const { config } = await load(shell, options)
  const approved = await audited(config, { operation: 'approve_pins', arguments: { ...selection } }, () =>
    pins.approve(selection),
  )
  if (options.json) {
    output.value({ approved })
    return exit.ok
  }
  for (const { label, hash } of approved) output.print(`approved ${visible(label)} as ${hash.slice(0, 12)}`)
  if (approved.length === 0) output.note('Nothing to approve: what was seen last is approved already.')
  const others = selection.label === undefined ? [] : (pins.find(selection.label)?.pin.pending ?? [])
  const left = others.filter(({ hash }) => approved.every((one) => one.hash !== hash))
  if (left.length > 0) {
    output.note(`${left.length} other definition(s) under this name still wait; \`toolway pins show\` shows them.`)
  }
  return exit.ok
}

function selectionFor(what: string | undefined, { all, hash }: ApproveOptions, pins: OfflinePins): Selection {
  if ((what === undefined) === (all !== true)) {
    throw new UsageError(
      'Say what to approve: server.tool, server.* or --all.',
      '`toolway pins list --changed` shows what waits.',
    )
  }
  if (what === undefined) {
    if (hash !== undefined) throw new UsageError('--hash goes with the name of one definition.')
    return {}
  }
  const found = pins.find(what)
  if (found) return hash === undefined ? { label: what } : { label: what, hash: fullHash(hash, found.pin) }
  // A tool may well be named `*`, so a whole server is only meant where there is no such tool.
  if (!what.endsWith('.*')) throw unknownPin(what, pins.states)
  if (hash !== undefined) throw new UsageError('--hash goes with the name of one definition.')
  const server = what.slice(0, -2)
  if (!pins.servers.includes(server)) throw unknownServer(server, pins.servers)
  return { server }
}

const shortest = 8

function fullHash(
  start: string,
  {
    pending,
    approved,
  }: {
    readonly pending: readonly { readonly hash: string }[]
    readonly approved: readonly { readonly hash: string }[]
  },
): string {
  const found = [...pending, ...approved].filter(({ hash }) => hash.startsWith(start.toLowerCase()))
  const [one, other] = found
  if (start.length >= shortest && one && !other) return one.hash
  throw new UsageError(
    `No definition under this name has a hash that begins with ${visible(start)}.`,
    `\`toolway pins show\` shows the hashes; at least ${shortest} characters are needed.`,
  )
}
