import * as z from 'zod'
import type { SessionView } from '../contract.ts'
import type { Guest } from '../credentials.ts'
import { answered, guarded, open, type Route } from '../route.ts'
import { sessionView } from '../schema/agents.ts'

/** The longest credential there is, as JSON spells it. */
const maxBody = 64 * 1024

export const sessionRoutes: readonly Route[] = [
  guarded({
    method: 'GET',
    path: 'session',
    summary: 'Who is asking, and what they may do',
    access: 'guest',
    answer: sessionView,
    run: ({ guest }) => viewOf(guest),
  }),
  open({
    method: 'POST',
    path: 'session',
    summary: 'Takes a credential and sets a cookie that stands for it',
    access: 'anyone',
    body: z.strictObject({ token: z.string().min(1).describe('The token, an API key, or a JSON Web Token.') }),
    maxBody,
    answer: sessionView,
    async run({ request, response, body }, { credentials }) {
      const { guest, cookie } = await credentials.logIn(request, body.token)
      response.setHeader('Set-Cookie', cookie)
      return viewOf(guest)
    },
  }),
  open({
    method: 'DELETE',
    path: 'session',
    summary: 'Ends what the cookie stands for',
    access: 'anyone',
    run({ request, response }, { credentials }) {
      response.setHeader('Set-Cookie', credentials.logOut(request))
    },
  }),
  guarded({
    method: 'GET',
    path: 'events',
    summary: 'Server-sent events: overview, calls, servers, reload; it begins with all of them',
    access: 'guest',
    stream: true,
    run({ guest, caller, response }, { events, watch }) {
      events.open(caller, response)
      watch(guest, response)
      return answered
    },
  }),
  open({
    method: 'GET',
    path: 'openapi.json',
    summary: 'This document',
    access: 'anyone',
    answer: z.record(z.string(), z.unknown()),
    run: (_, { document }) => document(),
  }),
]

const viewOf = ({ caller }: Guest): SessionView => {
  const { principal, agent, authenticated, admin, agents } = caller
  return { principal, agent, authenticated, admin, agents }
}
