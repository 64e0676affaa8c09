import { Json } from '../../json/json.ts'
import { methodNotFound, readMessage } from '../../wire/message.ts'
import { modernErrors } from '../../wire/revisions.ts'
import type { ResponseHead } from './http-channel.ts'

/* What a server's rejection of a request says about its session and its protocol. */

/** Maximum length of a rejection's body, in bytes. */
export const maxRefusal = 64 * 1024

/**
 * Whether a rejection means that the server does not know the session. Many servers respond with 400 although the
 * protocol requires 404, and some respond with 404 to an unknown method.
 */
export function forgets({ status }: ResponseHead, text: Buffer = Buffer.alloc(0)): boolean {
  const message = readMessage(text)
  if (message.kind === 'error' && message.id !== null) {
    return status === 404 && Json.raw<{ code: number }>(message.error).value.code !== methodNotFound
  }
  return status === 404 || (status === 400 && aboutSession.test(text.toString('latin1')))
}

const aboutSession = /session|not initialized/i

/**
 * Whether a response may mean that the server has lost the session, although the protocol does not say so: any rejection
 * but those for too many requests or with a challenge for the credential, or a JSON-RPC error about the session.
 */
export function mayForget({ status, header }: ResponseHead, text: Buffer = Buffer.alloc(0)): boolean {
  if (status === 429 || status === 503) return false
  if (status >= 400 && header('www-authenticate') !== undefined && !aboutSession.test(text.toString('latin1')))
    return false
  const mayBeError = text.length <= maxRefusal && text.includes('"error"')
  if (status < 400 && !(mayBeError && aboutSession.test(text.toString('latin1')))) return false
  const message = readMessage(text)
  if (message.kind !== 'error') return status >= 400
  const { code } = Json.raw<{ code: number }>(message.error).value
  return code !== methodNotFound && (status >= 400 || aboutSession.test(message.error.toString('latin1')))
}

/** Whether a rejection says that the server does not support the protocol revision of the request. */
export function refusesVersion(text: Buffer | undefined): boolean {
  const error = text && readMessage(text)
  return (
    error?.kind === 'error' && Json.raw<{ code: number }>(error.error).value.code === modernErrors.unsupportedVersion
  )
}

/** Whether a server of another revision may respond like this. */
export const mayBeOtherProtocol = ({ status }: ResponseHead): boolean => [400, 404, 405].includes(status)
