import type { IncomingMessage, ServerResponse } from 'node:http'
import { ToolwayError } from '../../core/errors.ts'
import { plainPage } from '../../lib/html-page.ts'
import { methodNotAllowed } from '../errors.ts'
import type { AdminService } from './service.ts'

/** Where authorization servers send people back to. */
export const callbackPath = '/oauth/callback'

/** The same as whoever asks knows it: browsers say which name they came by, and the door has looked at that. */
export const callbackOf = ({ headers }: IncomingMessage): URL =>
  new URL(callbackPath, headers.origin ?? `http://${headers.host}`)

/**
 * Takes the answer of an authorization server. Whoever brings it shows no credential, because no cookie of ours comes
 * along from another site: what they bring must belong to a sign-in that an operator has begun, and is taken once.
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
    if (server === undefined) throw new ToolwayError('INVALID_ARGUMENTS', 'Nobody can sign in to servers here.')
    const link = { href: `/servers/${encodeURIComponent(server)}`, text: `Back to ${server}` }
    send(response, 200, plainPage(`Toolway is signed in to ${server}.`, link))
  } catch (thrown) {
    const { code, message } = ToolwayError.from(thrown)
    const link = { href: '/servers', text: 'Back to the servers' }
    send(response, code === 'INTERNAL' ? 500 : 400, plainPage(`That did not work. ${message}`, link))
  }
}

const send = (response: ServerResponse, status: number, { headers, body }: ReturnType<typeof plainPage>): void => {
  response.writeHead(status, headers).end(body)
}
