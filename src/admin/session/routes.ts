import * as z from 'zod'
import type { SessionView } from '../contract.ts'
import * as figures from '../overview/schema.ts'
import { publicRoute, type Route, userRoute } from '../router.ts'
import type { AdminUser } from './credentials.ts'

/** Maximum size of a login request; large enough for the longest credential, encoded as JSON. */
const maxBody = 64 * 1024

/** Signing in and out. */
export const sessionRoutes: readonly Route[] = [
  userRoute('GET', 'session', 'The current user and their rights', {
    answer: figures.sessionView,
    run: ({ user }) => viewOf(user),
  }),
  publicRoute('POST', 'session', 'Logs in with a credential and sets a cookie', {
    body: z.strictObject({ token: z.string().min(1).describe('The token, an API key, or a JSON Web Token.') }),
    maxBody,
    answer: figures.sessionView,
    async run({ request, response, body }, { credentials }) {
      const { user, cookie } = await credentials.logIn(request, body.token)
      response.setHeader('Set-Cookie', cookie)
      return viewOf(user)
    },
  }),
  publicRoute('DELETE', 'session', 'Logs out and deletes the cookie', {
    async run({ request, response }, { credentials }) {
      response.setHeader('Set-Cookie', await credentials.logOut(request))
    },
  }),
]

const viewOf = ({ caller }: AdminUser): SessionView => {
  const { principal, agent, authenticated, admin, agents } = caller
  return { principal, agent, authenticated, admin, agents }
}
