import type { IncomingMessage, ServerResponse } from 'node:http'
import { ToolwayError } from '../../core/errors.ts'
import { plainPage } from '../../lib/html-page.ts'
import { methodNotAllowed } from '../../serve/errors.ts'

export const callbackPath = '/oauth/callback'

/** The redirect URL. It uses the host from the browser's request, which has already been checked. */
export const callbackOf = ({ headers }: IncomingMessage): URL =>
  new URL(callbackPath, headers.origin ?? `http://${headers.host}`)

/**
 * Handles the redirect from an authorization server. The request carries no credential, because browsers do not send a
 * SameSite=Strict cookie when another site redirects to this one. Instead, the parameters must belong to a pending
 * sign-in, and they are accepted only once.
 */
export async function answerCallback(
  request: IncomingMessage,
  response: ServerResponse,
  signedIn: (params: URLSearchParams) => Promise<string>,
): Promise<void> {
  if (request.method !== 'GET') throw methodNotAllowed(request.method, 'GET')
  const { searchParams } = new URL(request.url ?? '', 'http://localhost')
  try {
    redirectTo(response, `${serverPage(await signedIn(searchParams))}?signIn=done`)
  } catch (thrown) {
    const { code, message, details } = ToolwayError.from(thrown)
    const { server, cause } = details
    if (server !== undefined && isDenial(cause)) return redirectTo(response, `${serverPage(server)}?signIn=denied`)
    const link =
      server === undefined
        ? { href: '/servers', text: 'Back to servers' }
        : { href: serverPage(server), text: `Back to ${server}` }
    const { headers, body } = plainPage(`Sign-in failed. ${message}`, link)
    response.writeHead(code === 'INTERNAL' ? 500 : 400, headers).end(body)
  }
}

const serverPage = (server: string): string => `/servers/${encodeURIComponent(server)}`

/** Whether the person at the authorization server did not consent. */
const isDenial = (cause: unknown): boolean => (cause as { code?: unknown } | undefined)?.code === 'access_denied'

/** Leaves this address, which contains an authorization code, for a page of the dashboard. */
const redirectTo = (response: ServerResponse, location: string): void => {
  response.writeHead(303, { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }).end()
}
