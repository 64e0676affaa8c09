import { Json } from '../core/json.ts'
import { ProtocolError } from './errors.ts'
import { isObject, type Params } from './inbound.ts'
import { rpc } from './refusal.ts'

const maxTokenBytes = 256

/** Refuses a progress token that is neither text nor a whole number, or too long: it is sent back with each progress. */
export function checkProgressToken({ _meta }: Params): void {
  const token = isObject(_meta) ? _meta.progressToken : undefined
  if (token === undefined || Number.isSafeInteger(token)) return
  if (typeof token === 'string' && Buffer.byteLength(token) <= maxTokenBytes) return
  const sentence = `"_meta.progressToken" must be a whole number, or text of at most ${maxTokenBytes} bytes.`
  throw new ProtocolError(rpc.params, sentence)
}

/** Tokens are renewed on every hop, and with every request of a caller that comes again: here it has the caller's. */
export function progressUnder(token: unknown, params: Json): Json {
  const progress = params.value as Params
  return progress.progressToken === token ? params : Json.of({ ...progress, progressToken: token })
}
