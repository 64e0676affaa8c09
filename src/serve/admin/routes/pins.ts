import { adminRoute, type Route } from '../router.ts'
import * as pins from '../schemas/pins.ts'

/** Pinned tool definitions, and the decisions about them. */
export const pinsRoutes: readonly Route[] = [
  adminRoute('GET', 'pins', 'Pinned definitions of tools, prompts and instructions', {
    query: pins.pinsQuery,
    answer: pins.pinPage,
    run: ({ query }, { admin }) => admin.pins(query),
  }),
  adminRoute('GET', 'pins/{label}', 'One pin: its definitions, what changed and what the scanner found', {
    answer: pins.pinDetail,
    run: ({ target }, { admin }) => admin.pin(target),
  }),
  adminRoute('POST', 'pins/{label}/approve', 'Approves exactly one definition; it can be used at once', {
    body: pins.pinDecision,
    answer: pins.pinDetail,
    run: ({ caller, target, body }, { admin }) => admin.approvePin(caller, target, body.hash),
  }),
  adminRoute('POST', 'pins/{label}/block', 'Blocks a definition until it is approved', {
    body: pins.pinDecision,
    answer: pins.pinDetail,
    run: ({ caller, target, body }, { admin }) => admin.blockPin(caller, target, body.hash),
  }),
]
