import { Json } from '../../../core/json.ts'
import { answered, memberOf, type Route, userRoute } from '../router.ts'
import * as calls from '../schemas/calls.ts'
import * as playground from '../schemas/playground.ts'

/** Trying out tools, resources and prompts. */
export const playgroundRoutes: readonly Route[] = [
  userRoute('POST', 'playground', 'Calls a tool, reads a resource or gets a prompt; streams events', {
    stream: true,
    body: playground.playgroundInput,
    async run({ user, caller, body, bytes, signal, response }, { admin, playground: streams, watch }) {
      watch(user, response)
      const given = bytes && (memberOf(bytes, 'arguments') as Json<Record<string, unknown>> | undefined)
      await streams.run(admin, { caller, given: { ...body, arguments: given ?? Json.of({}) }, signal, response })
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
