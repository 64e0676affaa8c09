import type { IncomingMessage, ServerResponse } from 'node:http'
import { ToolwayError } from '../../core/errors.ts'
import { plainPage } from '../../lib/html-page.ts'
import { methodNotAllowed } from '../errors.ts'
import type { AdminService } from './service.ts'

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
  admin: AdminService,
): Promise<void> {
  if (request.method !== 'GET') throw methodNotAllowed(request.method, 'GET')
  const { searchParams } = new URL(request.url ?? '', 'http://localhost')
  try {
    const server = await admin.signedIn?.(searchParams)
    if (server === undefined)
      throw new ToolwayError('INVALID_ARGUMENTS', 'This gateway does not support signing in to servers.')
    const link = { href: `/servers/${encodeURIComponent(server)}`, text: `Back to ${server}` }
    send(response, 200, plainPage(`Toolway is now signed in to ${server}.`, link))
  } catch (thrown) {
    const { code, message } = ToolwayError.from(thrown)
    const link = { href: '/servers', text: 'Back to servers' }
    send(response, code === 'INTERNAL' ? 500 : 400, plainPage(`Sign-in failed. ${message}`, link))
  }
}

const send = (response: ServerResponse, status: number, { headers, body }: ReturnType<typeof plainPage>): void => {
  response.writeHead(status, headers).end(body)
}
