import { Json } from '../core/json.ts'
import type { Params } from './inbound.ts'

/** Tokens are renewed on every hop, and with every request of a caller that comes again: here it has the caller's. */
export function progressUnder(token: unknown, params: Json): Json {
  const progress = params.value as Params
  return progress.progressToken === token ? params : Json.of({ ...progress, progressToken: token })
}
