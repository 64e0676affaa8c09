import { signal } from '@preact/signals'
import type { AdminError } from '../../../src/admin/contract.ts'
import { parseExactly } from '../format/exact-json.ts'
import { withQuery } from '../routing/query.ts'

/** An error from the admin API. `status` is 0 if there was no response. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** Whatever was thrown, as an error that can be shown. */
export const asApiError = (thrown: unknown): ApiError =>
  thrown instanceof ApiError ? thrown : new ApiError(0, 'FAILED', String(thrown))

/** Query parameters. Those that are undefined or empty are omitted. */
export type QueryValues = Readonly<Record<string, string | number | undefined>>

export interface RequestOptions {
  readonly method?: 'POST' | 'DELETE'
  readonly values?: QueryValues
  readonly body?: unknown
  /** The body as raw JSON, for numbers that JavaScript would round. */
  readonly text?: string
  /** Whether numbers in the response that JavaScript would round become `ExactNumber`s. */
  readonly exact?: boolean
  readonly signal?: AbortSignal | undefined
}

/** Called when a credential is missing or has expired. */
let unauthorized: () => void = () => {}
export const onUnauthorized = (listener: () => void): void => {
  unauthorized = listener
}

/** Whether the last request was answered by the gateway, and not by nobody or by a proxy in front of it. */
export const isAnswering = signal(true)

/** Calls the admin API. Rejects with an ApiError if the request fails, or with the signal's reason if it is aborted. */
export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const response = await fetchResponse(path, options)
  const text = await response.text()
  return (text === '' ? undefined : parseJson(text, response.status, options.exact)) as T
}

/** Like `request`, but for responses that are streamed. */
export async function fetchResponse(path: string, options: RequestOptions = {}): Promise<Response> {
  const { method = 'GET', values = {}, body, signal } = options
  const text = options.text ?? (body === undefined ? undefined : JSON.stringify(body))
  const response = await send(addressOf(path, values), {
    method,
    headers: {
      ...(method !== 'GET' && { 'Toolway-Admin': '1' }),
      ...(text !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(text !== undefined && { body: text }),
    ...(signal && { signal }),
  })
  const error = response.ok ? undefined : toApiError(await response.text(), response.status)
  isAnswering.value = !/^HTTP_50[234]$/.test(error?.code ?? '')
  if (error === undefined) return response
  if (response.status === 401 && path !== 'session') unauthorized()
  throw error
}

/** The address of a request to the admin API. */
export function addressOf(path: string, values: QueryValues): string {
  const params = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value?.toString()]))
  return withQuery(`/admin/api/${path}`, params)
}

async function send(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, init)
  } catch (thrown) {
    if (init.signal?.aborted) throw thrown
    isAnswering.value = false
    throw new ApiError(0, 'NO_ANSWER', 'Cannot reach Toolway. It may have stopped, or the network is down.')
  }
}

function parseJson(text: string, status: number, exact = false): unknown {
  try {
    return exact ? parseExactly(text) : JSON.parse(text)
  } catch {
    throw new ApiError(status, 'NOT_JSON', 'The response is not from Toolway. A proxy may have answered instead.')
  }
}

function toApiError(text: string, status: number): ApiError {
  const { error } = (text.startsWith('{') ? parseJson(text, status) : {}) as Partial<AdminError>
  return new ApiError(
    status,
    error?.code ?? `HTTP_${status}`,
    error?.message ?? `The request failed with HTTP ${status}.`,
  )
}
