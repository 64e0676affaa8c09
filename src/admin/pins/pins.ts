import { isOpen, type PinState, reviewPin, stateOf } from '../../catalog/pins/pin-state.ts'
import { visible } from '../../catalog/scan/finding.ts'
import type { Caller } from '../../core/call.ts'
import { invalidArguments } from '../../core/errors.ts'
import { pluralize } from '../../lib/message-text.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import { HttpError, rpcCodes } from '../../serve/errors.ts'
import { type AdminContext, audited } from '../context.ts'
import type { ApprovedPins, PinDecisions, PinDetail, PinPage, PinsQuery, PinView } from '../contract.ts'
import { adminRoute, type Route } from '../router.ts'
import * as schema from './schema.ts'

export type PinsService = ReturnType<typeof createPinsAdmin>

/**
 * Pins in this process. A decision applies here at once, and within a second in other processes that share the state
 * folder. Replicas with a folder of their own need their own decision.
 */
export function createPinsAdmin({ current, audit }: Pick<AdminContext, 'current' | 'audit'>) {
  const find = (label: string) => {
    const { pins } = current()
    const found = pins.find(label)
    if (found) return found
    const labels = pins.list().map((state) => state.label)
    throw invalidArguments(`There is no pinned definition ${visible(label).slice(0, 200)}${didYouMean(label, labels)}`)
  }

  const detail = (label: string): PinDetail => {
    const { mode, names } = current().pins
    const { server, pin } = find(label)
    return { ...viewOf(stateOf(server, pin, mode)), mode, definitions: reviewPin(server, pin, names()).map(shown) }
  }

  /** Runs a decision about one definition that is kept for a pin. */
  const decide = async (
    caller: Caller,
    operation: 'approve_pins' | 'block_pin',
    { label, hash }: { readonly label: string; readonly hash: string },
    work: () => Promise<unknown>,
  ): Promise<PinDetail> => {
    const { server, pin } = find(label)
    if (![...pin.approved, ...pin.pending].some((one) => one.hash === hash))
      throw invalidArguments(`${visible(label)} has no definition ${hash}: reload the page, it may have changed again.`)
    await audited(audit, caller, { operation, server, arguments: { label, hash } }, work)
    return detail(label)
  }

  return {
    pins({ query = '', server, show, cursor, limit }: PinsQuery): PinPage {
      const { pins, mode } = { pins: current().pins, mode: current().pins.mode }
      const words = query.toLowerCase().split(/\s+/).filter(Boolean)
      const all = pins.list().map(viewOf)
      const open = all.filter((pin) => pin.open)
      const matching = [...open, ...(show === 'open' ? [] : all.filter((pin) => !pin.open))].filter(
        (pin) =>
          (server === undefined || pin.server === server) &&
          words.every((word) => pin.label.toLowerCase().includes(word)),
      )
      const start = cursor === undefined ? 0 : matching.findIndex(({ label }) => label === cursor) + 1
      if (cursor !== undefined && start === 0)
        throw invalidArguments('Invalid cursor: use `nextCursor` from a previous page, or start without one.')
      const page = matching.slice(start, start + limit)
      const more = start + limit < matching.length
      const nextCursor = more ? (page.at(-1)?.label ?? null) : null
      return { mode, pins: page, total: matching.length, open: open.length, nextCursor }
    },
    pin: detail,
    /** Approves exactly the definition with this hash. */
    approvePin: (caller: Caller, label: string, hash: string) =>
      decide(caller, 'approve_pins', { label, hash }, () => current().pins.approve({ label, hash })),
    /** Approves all these definitions or none: rejects with a conflict if a server has changed one of them. */
    async approvePins(caller: Caller, definitions: PinDecisions['definitions']): Promise<ApprovedPins> {
      // By label and hash: `b.c` of server `a` and `c` of server `a.b` have the same label.
      const servers = new Map(
        current()
          .pins.list()
          .map(({ label, hash, server }) => [`${hash} ${label}`, server]),
      )
      const chosen = definitions.map(({ label, hash }) => {
        const server = servers.get(`${hash} ${label}`)
        return { label, hash, server: server ?? find(label).server, isOffered: server !== undefined }
      })
      const changed = chosen.filter(({ isOffered }) => !isOffered)
      if (changed.length > 0) {
        const names = changed.slice(0, 3).map(({ label }) => visible(label).slice(0, 200))
        const count = `${pluralize(changed.length, 'definition')} changed since they were shown: ${names.join(', ')}`
        throw new HttpError(409, rpcCodes.request, `Nothing was approved. ${count}. Review them again.`)
      }
      await Promise.all(
        chosen.map(({ label, hash, server }) =>
          audited(audit, caller, { operation: 'approve_pins', server, arguments: { label, hash } }, () =>
            current().pins.approve({ label, hash, server }),
          ),
        ),
      )
      return { approved: chosen.length }
    },
    /** Blocks the definition with this hash until it is approved. */
    blockPin: (caller: Caller, label: string, hash: string) =>
      decide(caller, 'block_pin', { label, hash }, () => current().pins.block(label, hash)),
  }
}

function viewOf(state: PinState): PinView {
  const { approvedAt = null, approvedBy = null, pending: _, ...rest } = state
  const changed = state.changed.map((field) => visible(field))
  return {
    ...rest,
    name: visible(state.name),
    open: isOpen(state),
    approvedAt,
    approvedBy,
    changed,
    flags: [...state.flags],
  }
}

const shown = (definition: ReturnType<typeof reviewPin>[number]): PinDetail['definitions'][number] => ({
  ...definition,
  findings: definition.findings.map((finding) => ({ ...finding, where: visible(finding.where) })),
})

export const pinsRoutes = (admin: PinsService): readonly Route[] => [
  adminRoute('GET', 'pins', 'Pinned definitions of tools, prompts and instructions', {
    query: schema.pinsQuery,
    answer: schema.pinPage,
    run: ({ query }) => admin.pins(query),
  }),
  adminRoute('GET', 'pins/{label}', 'One pin: its definitions, what changed and what the scanner found', {
    answer: schema.pinDetail,
    run: ({ target }) => admin.pin(target),
  }),
  adminRoute('POST', 'pins/approve', 'Approves several definitions, or none if one of them has changed since', {
    body: schema.pinDecisions,
    answer: schema.approvedPins,
    run: ({ caller, body }) => admin.approvePins(caller, body.definitions),
  }),
  adminRoute('POST', 'pins/{label}/approve', 'Approves exactly one definition; it can be used at once', {
    body: schema.pinDecision,
    answer: schema.pinDetail,
    run: ({ caller, target, body }) => admin.approvePin(caller, target, body.hash),
  }),
  adminRoute('POST', 'pins/{label}/block', 'Blocks a definition until it is approved', {
    body: schema.pinDecision,
    answer: schema.pinDetail,
    run: ({ caller, target, body }) => admin.blockPin(caller, target, body.hash),
  }),
]
