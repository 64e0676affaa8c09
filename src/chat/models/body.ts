import type { ModelRequest } from './model.ts'
import type { Plan } from './plan.ts'
import type { Dispensable } from './profile.ts'

/** The object that is sent. */
export function bodyOf(
  model: string,
  request: ModelRequest,
  plan: Plan,
  unwanted: ReadonlySet<Dispensable>,
): Readonly<Record<string, unknown>> {
  const { stream = false, maxTokens, temperature } = request
  const body: Record<string, unknown> = { model, messages: plan.messages, ...plan.fields, stream }
  if (stream) body.stream_options = { include_usage: true }
  if (temperature !== undefined) body.temperature = temperature
  if (maxTokens !== undefined) body[unwanted.has('max_tokens') ? 'max_completion_tokens' : 'max_tokens'] = maxTokens
  for (const field of unwanted) delete body[field]
  return body
}
