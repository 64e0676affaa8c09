import { HttpError, rpcCodes } from '../errors.ts'

export interface OpenAiError {
  readonly error: {
    readonly message: string
    readonly type: string
    readonly param: string | null
    /** Toolway's code if the error has one. */
    readonly code: string
  }
}

interface Named {
  /** The member of the request that is invalid. */
  readonly param?: string
  readonly code?: string
}

export const badRequest = (message: string, named: Named = {}): HttpError =>
  new HttpError(400, rpcCodes.params, message, { data: { code: 'invalid_request', ...named } })

export const notFound = (message: string, named: Named): HttpError =>
  new HttpError(404, rpcCodes.params, message, { data: named })

const types: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
}

export function errorOf({ status, message, details: { data } }: HttpError): OpenAiError {
  const isOurs = status >= 500
  const usual = isOurs ? 'INTERNAL' : 'invalid_request'
  const { code = usual, param = null } = (data ?? {}) as Partial<OpenAiError['error']>
  const type = types[status] ?? (isOurs ? 'server_error' : 'invalid_request_error')
  return { error: { message, type, param, code } }
}

export const errorBody = (refusal: HttpError): Buffer => Buffer.from(JSON.stringify(errorOf(refusal)))
