import * as z from 'zod'
import * as calls from '../calls/schema.ts'
import * as pins from '../pins/schema.ts'
import * as playground from '../playground/schema.ts'
import { adminRoute, answered, argumentsOf, type Route, userRoute } from '../router.ts'
import * as catalog from './schema.ts'

export const toolsRoutes: readonly Route[] = [
  userRoute('GET', 'tools', 'The tools, in the order in which they are served', {
    query: calls.toolsQuery,
    answer: catalog.toolPage,
    run: ({ caller, query }, { admin }) => admin.tools(caller, query),
  }),
  userRoute('GET', 'tools/{name}', 'One tool, its definition and who may use it', {
    answer: catalog.toolDetail,
    run: ({ caller, target }, { admin }) => admin.tool(caller, target),
  }),
  userRoute('POST', 'tools/{name}/call', 'Calls a tool as one of the agents that the credential may act as', {
    body: z.strictObject({
      arguments: z.record(z.string(), z.unknown()).default({}).describe('Its arguments.'),
      agent: z.string().optional().describe("The agent to act as. Default: the credential's agent."),
      timeoutMs: z.int().min(1).optional().describe("The call's time limit. Default: as configured."),
    }),
    answer: catalog.tryResult,
    run({ caller, target, body, bytes, signal }, { admin }) {
      return admin.tryTool(caller, target, { ...body, arguments: argumentsOf(bytes) }, signal)
    },
  }),
]

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
  adminRoute('POST', 'pins/approve', 'Approves several definitions, or none if one of them has changed since', {
    body: pins.pinDecisions,
    answer: pins.approvedPins,
    run: ({ caller, body }, { admin }) => admin.approvePins(caller, body.definitions),
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

export const playgroundRoutes: readonly Route[] = [
  userRoute('POST', 'playground', 'Calls a tool, reads a resource or gets a prompt; streams events', {
    stream: true,
    body: playground.playgroundInput,
    async run({ user, caller, body, bytes, signal, response }, { admin, playground: streams, watch }) {
      watch(user, response)
      await streams.run(admin, { caller, given: { ...body, arguments: argumentsOf(bytes) }, signal, response })
      return answered
    },
  }),
  userRoute('POST', 'playground/{ask}/answer', "Answers a server's request that a playground stream reported", {
    body: playground.playgroundAnswer,
    run: ({ caller, target, body }, { admin }) => admin.playgroundAnswer(caller, target, body),
  }),
  userRoute('POST', 'completions', 'Suggests values for an argument of a prompt or a resource template', {
    body: playground.completionInput,
    answer: playground.completionView,
    run: ({ caller, body, signal }, { admin }) => admin.completions(caller, body, signal),
  }),
  userRoute('GET', 'resources', 'The resources and resource templates', {
    query: calls.toolsQuery,
    answer: playground.resourcePage,
    run: ({ caller, query }, { admin }) => admin.resources(caller, query),
  }),
  userRoute('GET', 'prompts', 'The prompts', {
    query: calls.toolsQuery,
    answer: playground.promptPage,
    run: ({ caller, query }, { admin }) => admin.prompts(caller, query),
  }),
]
