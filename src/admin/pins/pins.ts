import { awaitsReview, type PinState, pinStateOf, reviewPin } from '../../catalog/pins/pin-state.ts'
import type { Pins } from '../../catalog/pins/pins.ts'
import { visible } from '../../catalog/scan/finding.ts'
import type { Caller } from '../../core/call.ts'
import { invalidArguments } from '../../core/errors.ts'
import { pluralize } from '../../lib/message-text.ts'
import { didYouMean } from '../../lib/similar-text.ts'
import { HttpError, rpcCodes } from '../../serve/errors.ts'
import { type AdminContext, auditOperation } from '../context.ts'
import type { ApprovedPins, PinDecisions, PinDetail, PinPage, PinsQuery, PinView } from '../contract.ts'
import { adminRoute, type Route } from '../router.ts'
import { pageAfter } from '../tools/visibility.ts'
import * as schema from './schema.ts'

export type PinsService = ReturnType<typeof createPinsAdmin>

/**
 * Pins in this process. A decision applies here at once, and within a second in other processes that share the state
 * folder. Replicas with a folder of their own need their own decision.
 */
export function createPinsAdmin({ current, audit }: Pick<AdminContext, 'current' | 'audit'>) {
  const pin = (label: string): PinDetail => {
    const { pins } = current()
    const { server, pin } = requirePin(pins, label)
    const definitions = reviewPin(server, pin, pins.names()).map((definition) => ({
      ...definition,
      findings: definition.findings.map((finding) => ({ ...finding, where: visible(finding.where) })),
    }))
    return { ...viewPin(pinStateOf(server, pin, pins.mode)), mode: pins.mode, definitions }
  }

  const decide = async (
    caller: Caller,
    operation: 'approve_pins' | 'block_pin',
    { label, hash }: { readonly label: string; readonly hash: string },
    work: (pins: Pins) => Promise<unknown>,
  ): Promise<PinDetail> => {
    const { server, pin: found } = requirePin(current().pins, label)
    if (![...found.approved, ...found.pending].some((one) => one.hash === hash))
      throw invalidArguments(`${visible(label)} has no definition ${hash}: reload the page, it may have changed again.`)
    await auditOperation(audit, caller, { operation, server, arguments: { label, hash } }, () => work(current().pins))
    return pin(label)
  }

  return {
    pin,
    pins: (query: PinsQuery): PinPage => pinPageOf(current().pins, query),
    /** Approves exactly the definition with this hash. */
    approvePin: (caller: Caller, label: string, hash: string) =>
      decide(caller, 'approve_pins', { label, hash }, (pins) => pins.approve({ label, hash })),
    /** Blocks the definition with this hash until it is approved. */
    blockPin: (caller: Caller, label: string, hash: string) =>
      decide(caller, 'block_pin', { label, hash }, (pins) => pins.block(label, hash)),
    /** Approves all these definitions or none: rejects with a conflict if a server has changed one of them. */
    async approvePins(caller: Caller, definitions: PinDecisions['definitions']): Promise<ApprovedPins> {
      const { pins } = current()
      // By label and hash: `b.c` of server `a` and `c` of server `a.b` have the same label.
      const servers = new Map(pins.list().map(({ label, hash, server }) => [`${hash} ${label}`, server]))
      const changed = definitions.filter(({ label, hash }) => !servers.has(`${hash} ${label}`))
      for (const { label } of changed) requirePin(pins, label)
      if (changed.length > 0) {
        const names = changed.slice(0, 3).map(({ label }) => visible(label).slice(0, 200))
        const count = `${pluralize(changed.length, 'definition')} changed since they were shown: ${names.join(', ')}`
        throw new HttpError(409, rpcCodes.request, `Nothing was approved. ${count}. Review them again.`)
      }
      const approvals = definitions.map(({ label, hash }) => {
        const server = servers.get(`${hash} ${label}`)
        const action = { operation: 'approve_pins', server, arguments: { label, hash } }
        return auditOperation(audit, caller, action, () => current().pins.approve({ label, hash, server }))
      })
      await Promise.all(approvals)
      return { approved: approvals.length }
    },
  }
}

function requirePin(pins: Pins, label: string) {
  const found = pins.find(label)
  if (found) return found
  const labels = pins.list().map((state) => state.label)
  throw invalidArguments(`There is no pinned definition ${visible(label).slice(0, 200)}${didYouMean(label, labels)}`)
}

function pinPageOf(pins: Pins, { query = '', server, show, cursor, limit }: PinsQuery): PinPage {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const all = pins.list().map(viewPin)
  const open = all.filter((pin) => pin.open)
  const matching = [...open, ...(show === 'open' ? [] : all.filter((pin) => !pin.open))].filter(
    (pin) =>
      (server === undefined || pin.server === server) && words.every((word) => pin.label.toLowerCase().includes(word)),
  )
  const { page, nextCursor } = pageAfter(matching, ({ label }) => label, cursor, limit)
  return { mode: pins.mode, pins: page, total: matching.length, open: open.length, nextCursor }
}

function viewPin(state: PinState): PinView {
  const { approvedAt = null, approvedBy = null, pending: _, ...rest } = state
  const changed = state.changed.map((field) => visible(field))
  return {
    ...rest,
    name: visible(state.name),
    open: awaitsReview(state),
    approvedAt,
    approvedBy,
    changed,
  }
}

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
